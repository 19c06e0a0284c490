//! A page that counts, without a browser: it makes the requests of the real page, and counts on the
//! mirrors of the shaders.

#![allow(dead_code, unreachable_pub)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use nqueens::cluster::coordinator::AddressFile;
use nqueens::kernel::gpu::layout::{
    Counters, LEVELS, LowerRow, LowerState, Params, Segment, Slot, UpperRow,
};
use nqueens::kernel::gpu::tables::{Specialisation, Variant};
use nqueens::kernel::gpu::{Backend, Batch, JobMemory, Mirror, Shape, Submission};
use serde_json::{Value, json};

/// An HTTP answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub code: u16,
    pub head: String,
    pub bytes: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// Returns the body, which must be of a success.
    pub fn expect(self) -> Value {
        assert_eq!(self.code, 200, "{}", String::from_utf8_lossy(&self.bytes));
        self.json()
    }
}

/// A client that can send any request.
#[derive(Clone, Debug)]
pub struct Client {
    pub address: String,
    /// The host of `--join-url`, if requests are to come from a reverse proxy.
    pub public: Option<String>,
    /// The headers of each request.
    pub headers: Vec<(String, String)>,
}

impl Client {
    /// Creates a client of the page of the coordinator in this folder.
    pub fn new(data: &Path) -> Self {
        let url = AddressFile::read(data).expect("it runs").join_page.expect("it has a page");
        let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
        let address = address.expect("a plain URL").to_owned();
        Self { address, public: None, headers: Vec::new() }
    }

    /// Creates a client whose requests come from a reverse proxy with this public host, which adds
    /// the address of the visitor to those that the visitor claims.
    pub fn proxied(data: &Path, host: &str, addresses: &str) -> Self {
        let headers = vec![("X-Forwarded-For".to_owned(), addresses.to_owned())];
        Self { public: Some(host.to_owned()), headers, ..Self::new(data) }
    }

    fn host(&self) -> &str {
        self.public.as_deref().unwrap_or(&self.address)
    }

    /// Sends a request with these headers and its own. Returns `None` if the connection is closed
    /// without an answer.
    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Option<Answer> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if headers.iter().all(|(name, _)| *name != "Host") {
            head += &format!("Host: {}\r\n", self.host());
        }
        let own = self.headers.iter().map(|(name, value)| (&name[..], &value[..]));
        for (name, value) in headers.iter().copied().chain(own) {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
        // A server that refuses the head may close before it has read the body.
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let code = head.split(' ').nth(1)?.parse().ok()?;
        Some(Answer { code, head, bytes: answer.split_off(end + 4) })
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"").expect("an answer")
    }

    /// Posts JSON as the page does.
    pub fn post(&self, path: &str, session: Option<&str>, body: &Value) -> Answer {
        let scheme = if self.public.is_some() { "https" } else { "http" };
        let origin = format!("{scheme}://{}", self.host());
        let bearer = session.map(|session| format!("Bearer {session}"));
        let mut headers = vec![("Origin", &origin[..]), ("Content-Type", "application/json")];
        headers.extend(bearer.iter().map(|bearer| ("Authorization", &bearer[..])));
        self.request("POST", path, &headers, body.to_string().as_bytes()).expect("an answer")
    }
}

/// A batch as the page reads it.
#[derive(Clone, Debug)]
pub struct PageBatch {
    pub variant: Variant,
    pub prefixes: Vec<LowerState>,
    pub segments: Vec<Segment>,
    pub slots: usize,
    pub checksum: u32,
}

/// The tables of a job as the page reads them.
#[derive(Clone, Debug)]
pub struct PageTables {
    head: Value,
    lower_rows: Vec<LowerRow>,
    upper_rows: Vec<UpperRow>,
}

/// The result of a page for a batch.
#[derive(Clone, Debug)]
pub struct PageResult {
    pub counters: Counters,
    pub slots: Vec<Slot>,
}

/// Splits a frame into its JSON and the words behind it.
fn frame(bytes: &[u8]) -> (Value, Vec<u32>) {
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
    let head = serde_json::from_slice(&bytes[4..4 + length]).expect("JSON");
    (head, bytemuck::pod_collect_to_vec(&bytes[4 + length..]))
}

fn taken<T: bytemuck::Pod>(words: &mut &[u32], count: usize) -> Vec<T> {
    let (these, rest) = words.split_at(count * size_of::<T>() / 4);
    *words = rest;
    bytemuck::pod_collect_to_vec(these)
}

fn size(head: &Value, name: &str) -> usize {
    head[name].as_u64().unwrap_or_else(|| panic!("no {name} in {head}")) as usize
}

/// A page with a session.
#[derive(Clone, Debug)]
pub struct Page {
    pub client: Client,
    pub session: String,
    pub worker: String,
    pub boot: u64,
    pub held: Vec<Value>,
    /// The tables of the last job, in the image that they are of.
    pub known: Option<(String, PageTables)>,
    /// True if it repeats calls that are refused because there are too many.
    pub patient: bool,
}

impl Page {
    /// Opens a session: with a token, or as a guest.
    pub fn open(client: Client, token: Option<&str>) -> Result<Self, Answer> {
        let body = token.map_or_else(|| json!({}), |token| json!({ "token": token }));
        let answer = client.post("/api/session", None, &body);
        if answer.code != 200 {
            return Err(answer);
        }
        let opened = answer.json();
        let text = |name: &str| opened[name].as_str().expect(name).to_owned();
        let (session, worker) = (text("session"), text("worker"));
        Ok(Self {
            client,
            session,
            worker,
            boot: fastrand::u64(..1 << 52),
            held: Vec::new(),
            known: None,
            patient: false,
        })
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        loop {
            let answer = self.client.post(path, Some(&self.session), body);
            if answer.code != 429 || !self.patient {
                return answer;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }

    pub fn sync_body(&self, wants: bool) -> Value {
        let held: Vec<Value> = self
            .held
            .iter()
            .map(|lease| json!({ "lease": lease, "left": lease["units"], "unstarted": lease["units"] }))
            .collect();
        json!({ "boot": self.boot.to_string(), "wants": wants, "held": held, "device": "a mirror" })
    }

    /// Syncs, and holds what it is to hold.
    pub fn sync(&mut self, wants: bool) -> Answer {
        let answer = self.post("/api/sync", &self.sync_body(wants));
        if answer.code == 200 {
            self.held = answer.json()["leases"].as_array().expect("leases").clone();
        }
        answer
    }

    /// Returns the units of the leases that it holds.
    pub fn units(&self) -> Vec<Value> {
        let number =
            |value: &Value| value.as_str().expect("a text").parse::<u64>().expect("a number");
        let units = |lease: &Value| {
            let first = number(&lease["first"]);
            let all = first..first + lease["units"].as_u64().expect("a number");
            let attempt = lease["attempt"].clone();
            all.map(move |unit| json!({ "attempt": attempt, "unit": unit.to_string() }))
                .collect::<Vec<_>>()
        };
        self.held.iter().flat_map(units).collect()
    }

    pub fn tables(&self, unit: &Value) -> Result<PageTables, Answer> {
        let answer = self.post("/api/tables", unit);
        if answer.code != 200 {
            return Err(answer);
        }
        let (head, words) = frame(&answer.bytes);
        let mut rest = &words[..];
        let lower_rows = taken(&mut rest, size(&head, "lower_rows"));
        let upper_rows = taken(&mut rest, size(&head, "upper_rows"));
        Ok(PageTables { head, lower_rows, upper_rows })
    }

    pub fn batches(&self, unit: &Value) -> Result<Vec<PageBatch>, Answer> {
        let answer = self.post("/api/unit", unit);
        if answer.code != 200 {
            return Err(answer);
        }
        let (head, words) = frame(&answer.bytes);
        let mut rest = &words[..];
        let batch = |head: &Value| PageBatch {
            variant: match head["variant"].as_str() {
                Some("plain") => Variant::Plain,
                Some("gated") => Variant::Gated,
                _ => Variant::General,
            },
            prefixes: taken(&mut rest, size(head, "prefixes")),
            segments: taken(&mut rest, size(head, "segments")),
            slots: size(head, "slots"),
            checksum: size(head, "checksum") as u32,
        };
        Ok(head["batches"].as_array().expect("batches").iter().map(batch).collect())
    }

    /// Fetches and counts a unit, which it holds.
    pub fn count(&mut self, unit: &Value) -> Vec<PageResult> {
        self.try_count(unit).unwrap_or_else(|answer| panic!("{answer:?}"))
    }

    /// Fetches and counts a unit.
    ///
    /// # Errors
    /// The answer of the coordinator, if it does not send the unit.
    pub fn try_count(&mut self, unit: &Value) -> Result<Vec<PageResult>, Answer> {
        let lease = self.held.iter().find(|lease| lease["attempt"] == unit["attempt"]);
        let lease = lease.expect("it holds the lease");
        let job = format!("{} {}", lease["job"], lease["mirrored"]);
        let (_, tables) = match self.known.take().filter(|(of, _)| *of == job) {
            Some(known) => known,
            None => (job.clone(), self.tables(unit)?),
        };
        let tables = self.known.insert((job, tables)).1.clone();
        Ok(self.batches(unit)?.iter().map(|batch| count(&tables, batch)).collect())
    }

    pub fn result(&self, unit: &Value, results: &[PageResult]) -> Answer {
        let base64 = |bytes: &[u8]| data_encoding::BASE64.encode(bytes);
        let batches: Vec<Value> = results
            .iter()
            .map(|result| {
                json!({
                    "counters": base64(bytemuck::bytes_of(&result.counters)),
                    "slots": base64(bytemuck::cast_slice(&result.slots)),
                })
            })
            .collect();
        let mut body = unit.clone();
        body["elapsed_s"] = 0.5.into();
        body["batches"] = batches.into();
        self.post("/api/result", &body)
    }

    /// Syncs and counts all units that it holds, each changed by `tamper`. Returns the verdicts.
    pub fn work(&mut self, tamper: impl Fn(&mut Vec<PageResult>)) -> Vec<String> {
        self.sync(true);
        let mut verdicts = Vec::new();
        for unit in self.units() {
            let mut results = self.count(&unit);
            tamper(&mut results);
            let answer = self.result(&unit, &results);
            let verdict = answer.json()["verdict"].as_str().map(str::to_owned);
            verdicts.push(verdict.unwrap_or_else(|| answer.code.to_string()));
        }
        self.held.clear();
        verdicts
    }
}

/// Counts a batch on the mirrors.
pub fn count(tables: &PageTables, batch: &PageBatch) -> PageResult {
    let shape = Shape { lanes: 64, chunk: 256, ring: 1 << 16, prefixes: 1 << 14 };
    let head = &tables.head;
    let (most_lower, most_upper) = (size(head, "most_lower"), size(head, "most_upper"));
    let mut level_first = [0; LEVELS];
    let mut levels = u64::from(shape.prefixes);
    for (level, first) in level_first.iter_mut().enumerate().skip(2).take(most_lower) {
        *first = levels as u32;
        levels += u64::from(shape.chunk) * (2 + level + most_upper) as u64;
    }
    let depth = size(head, "depth") as u32;
    let (lower_rows, upper_rows) = (&tables.lower_rows[..], &tables.upper_rows[..]);
    let mut mirror = Mirror::default();
    mirror.open(&JobMemory { shape, levels, lower_rows, upper_rows, depth }).expect("memory");
    let mut counters = Counters { level_first, ..Counters::default() };
    counters.level_count[0] = batch.prefixes.len() as u32;
    counters.lower_put = batch.checksum;
    let (prefixes, segments) = (batch.prefixes.clone(), batch.segments.clone());
    mirror.load(&Batch { counters, prefixes, segments, slots: batch.slots }).expect("memory");
    let special = Specialisation { depth, variant: batch.variant, look_ahead: true };
    let mut stamp = 0;
    let mut submit = |flush: bool| {
        stamp += 1;
        let params = Params {
            stamp,
            turns: 16_384,
            chunk: shape.chunk,
            ring_mask: shape.ring - 1,
            ring_reserve: shape.lanes * 8,
            most_emitted: size(head, "most_emitted") as u32,
            flush: flush.into(),
            lanes: shape.lanes,
        };
        let submission = Submission { params, rounds: 1, expansions: 4, special };
        mirror.submit(&submission).expect("a mirror");
        mirror.wait().expect("a mirror")
    };
    loop {
        let now = submit(false);
        let waiting = now.ring_write.wrapping_sub(now.ring_read).cast_signed();
        if waiting <= 0 && now.ring_returned == 0 && now.busy == 0 && now.level_count == [0; LEVELS]
        {
            break;
        }
    }
    let counters = submit(true);
    PageResult { counters, slots: mirror.slots().expect("a mirror") }
}

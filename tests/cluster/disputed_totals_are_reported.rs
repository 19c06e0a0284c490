//! A total that contradicts the published one is never reported as an answer: every command and
//! page shows that the job is disputed.

use crate::support;

use std::process::Output;

use nqueens::cluster::campaign::{COORDINATOR, CampaignEvent, Source, UnitId};
use nqueens::cluster::ledger::{CampaignFile, Entry};
use nqueens::decomposition::JobHash;
use nqueens::tally::{Residues, Tally};
use serde_json::Value;
use support::program::{assert_refused, text};
use support::{Coordinator, Scratch, eventually, printed, run};

/// Returns the last line of JSON that a command prints.
fn json(output: &Output) -> Value {
    let line = text(&output.stdout).lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Records 93 solutions of 8 queens, one too many, each unit confirmed by the coordinator itself:
/// as if every kernel were wrong in the same way.
fn miscount(data: &str) -> JobHash {
    let ledger = format!("{data}/ledger.db");
    let shown: Value =
        serde_json::from_str(&printed(&["ledger", "show", &ledger, "--json"])).expect("JSON");
    let name = shown["jobs"][0]["job"].as_str().expect("a name").to_owned();
    let job = JobHash::try_from(name).expect("a hash");
    let units = shown["jobs"][0]["units"].as_u64().expect("a number");
    let mut entries = Vec::new();
    for unit in 0..units {
        let thirds = if unit == 0 { 3 * 93 } else { 0 };
        let tally = Tally::from_parts(thirds, Residues::of(thirds), 1000);
        let source = |worker: &str, owner: &str| {
            let [worker, owner, kernel, device, build] =
                [worker, owner, "scalar", "cpu", "0.1.0"].map(str::to_owned);
            Source { worker, owner, kernel, device, build }
        };
        let done = CampaignEvent::UnitDone {
            unit: UnitId { job, unit },
            tally,
            source: source("w1", "anna"),
            attempt: 1,
            elapsed_s: 0.1,
            checks: None,
            sub_sums: Vec::new(),
            signature: None,
        };
        let recount = CampaignEvent::Recount {
            unit: UnitId { job, unit },
            tally,
            source: source(COORDINATOR, COORDINATOR),
            mirrored: true,
            agrees: true,
            elapsed_s: 0.1,
            signature: None,
        };
        entries.push(Entry::new(done, 1_700_000_000_000));
        entries.push(Entry::new(recount, 1_700_000_000_001));
    }
    let mut file = CampaignFile::open(ledger.as_ref()).expect("no coordinator has it open");
    file.append(&entries).expect("the disk has room");
    job
}

#[test]
fn a_total_that_contradicts_the_published_one_is_disputed_everywhere() {
    let scratch = Scratch::new("disputed");
    let metrics =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one");
    let log = scratch.file("log");
    let command = format!("echo \"$NQUEENS_NEWS_KIND: $NQUEENS_NEWS_TEXT\" >> '{log}'");
    let metrics = metrics.to_string();
    let arguments = ["--sync", "1s", "--notify-command", &command, "--metrics", &metrics];
    let mut coordinator = Coordinator::start(&scratch.path("data"), &arguments);
    let data = coordinator.data().to_owned();
    printed(&["submit", "count", "8", "--data", &data]);
    coordinator.process.kill();
    let job = miscount(&data).to_string();
    coordinator.restart();

    // A waiting client is told about the recounts, and finally that none is left.
    let waited = run(&["submit", "count", "8", "--wait", "--json", "--data", &data]);
    assert_eq!(waited.status.code(), Some(6), "{waited:?}");
    let report = json(&waited);
    assert_eq!((&report["state"], &report["published"]), (&"disputed".into(), &"differs".into()));
    assert_eq!(report["dispute_exhausted"], true);
    assert_eq!(report["units_audited"], report["units"]);
    let message = text(&waited.stderr).lines().last().expect("a line").to_owned();
    assert!(message.contains("the total 93 contradicts the published value 92"), "{message}");
    assert!(message.contains("please report it"), "{message}");

    // Only a request for that job by name reports it in the exit code.
    let named = run(&["status", &job[..8], "--data", &data]);
    assert_eq!(named.status.code(), Some(6), "{named:?}");
    for line in [
        "count of 8 queens, disputed",
        "DIFFERS from OEIS A000170",
        "DISPUTED",
        "  dispute     the total 93",
    ] {
        assert!(text(&named.stdout).contains(line), "{line}: {}", text(&named.stdout));
    }
    let watched = run(&["status", &job[..8], "--watch", "--json", "--data", &data]);
    assert_eq!(watched.status.code(), Some(6), "{watched:?}");
    assert_eq!(json(&watched)["jobs"][0]["state"], "disputed");
    assert!(printed(&["status", "--data", &data]).contains("disputed"));
    let listed = printed(&["jobs", "--data", &data]);
    assert!(listed.contains("disputed") && listed.contains("no recount is left"), "{listed}");
    assert!(!listed.contains("93 solutions"), "{listed}");

    let log = eventually("both notifications", || {
        std::fs::read_to_string(&log).ok().filter(|text| text.contains("stays disputed"))
    });
    assert!(log.contains(&format!("disputed: job {job} is disputed: ")), "{log}");
    assert!(!log.contains("finished"), "{log}");
    let scraped = eventually("metrics", || {
        let mut answer = ureq::get(format!("http://{metrics}/metrics")).call().ok()?;
        let text = answer.body_mut().read_to_string().ok()?;
        text.contains("nqueens_job_disputed").then_some(text)
    });
    for line in ["nqueens_job_disputed", "nqueens_job_running"] {
        let value = if line.contains("disputed") { 1 } else { 0 };
        assert!(scraped.contains(&format!("{line}{{job=\"{job}\"}} {value}")), "{scraped}");
    }

    // The ledger has the dispute too.
    let ledger = format!("{data}/ledger.db");
    let shown = printed(&["ledger", "show", &ledger]);
    assert!(shown.contains("(disputed)") && shown.contains("93, disputed"), "{shown}");
    let exported = printed(&["ledger", "export", &ledger]);
    assert!(exported.contains(r#""state":"disputed""#), "{exported}");

    // Operators can control the job, but cannot declare it correct.
    let before = |command: &str| {
        let answer = json(&run(&[command, &job[..8], "--json", "--data", &data]));
        answer["before"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(before("pause"), "disputed");
    assert_eq!(before("resume"), "paused");
    eventually("the dispute again", || {
        let status = run(&["status", &job[..8], "--data", &data]);
        (status.status.code() == Some(6)).then_some(())
    });
    assert_eq!(before("cancel"), "disputed");
    assert_eq!(run(&["status", &job[..8], "--data", &data]).status.code(), Some(0));
}

#[test]
fn invalid_shares_are_refused() {
    for command in [&["coordinator"][..], &["cluster", "8"]] {
        for flag in ["--audit", "--assurance"] {
            for share in ["2", "-0.1", "101%", "nan", "much"] {
                let arguments = [command, &[flag, share]].concat();
                assert_refused(
                    &arguments,
                    2,
                    &[&format!("invalid share '{share}'"), "from 0 to 1"],
                );
            }
        }
    }
}

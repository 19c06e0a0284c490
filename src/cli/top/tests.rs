//! Compares the screen with recorded ones in `tests/screens/`. To record them again:
//! NQUEENS_RECORD_SCREENS=1 cargo test --lib top.

mod picture;

use std::fs;
use std::path::PathBuf;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

use self::picture::svg;
use super::draw::draw;
use super::rate::Point;
use super::screen::{Action, Command, Input, Key, Message, Screen};
use super::unit_map::UnitMap;
use crate::cluster::protocol::v1;

/// 2026-11-21 19:26:59 UTC.
const NOW_MS: u64 = 1_795_289_219_000;

fn count(job: u8, n: usize, state: v1::JobState, units: [u64; 3]) -> v1::JobStatus {
    let [units, done, checked] = units;
    v1::JobStatus {
        job: vec![job; 16],
        text: format!(
            "nqueens-job/1 piece=queen n={n} placed=[] blocked=[] scheme=centre-cross depth=4 unit=152"
        ),
        state: state.into(),
        submitted_ms: NOW_MS - 60_000 * u64::from(job),
        state_ms: NOW_MS - 1_000 * u64::from(job),
        submitter: "local-operator".into(),
        units,
        done,
        checked,
        audited: checked / 10,
        spot_checked: checked / 4,
        assurance: checked as f64 / units as f64,
        open: units - done,
        units_per_s: if state == v1::JobState::Running { 12.5 } else { 0.0 },
        ..v1::JobStatus::default()
    }
}

fn status() -> v1::StatusResponse {
    let left = v1::TimeLeft { s: 65.0, least_s: Some(60.0), most_s: Some(72.0) };
    let running = v1::JobStatus {
        left: Some(left),
        ..count(0xa9, 21, v1::JobState::Running, [1500, 690, 230])
    };
    let ailing = v1::JobStatus {
        poisoned: 2,
        notes: vec!["unit 7 is set aside: a device failed: out of memory".into()],
        ..count(0xb1, 20, v1::JobState::Paused, [800, 100, 100])
    };
    let proof = v1::ProofStatus {
        job: vec![0xc3; 16],
        what: Some(v1::proof_status::What::First(v1::First { n: 62 })),
        state: v1::JobState::Running.into(),
        submitted_ms: NOW_MS - 12_000_000,
        row: 12,
        open: 5,
        lent: 3,
        refuted: 1234,
        ..v1::ProofStatus::default()
    };
    v1::StatusResponse {
        jobs: vec![ailing, count(0x92, 17, v1::JobState::Cancelled, [64, 10, 10]), running],
        proofs: vec![proof],
        now_ms: NOW_MS,
        workers: 3,
        build: "0.1.0".into(),
        ..v1::StatusResponse::default()
    }
}

fn worker(name: &str, kernel: &str, id: &str) -> v1::WorkerStatus {
    let device =
        v1::Device { id: id.into(), kernel: kernel.into(), capacity: 2, ..v1::Device::default() };
    v1::WorkerStatus {
        name: name.into(),
        build: "0.1.0".into(),
        capacity: 2,
        devices: vec![device],
        seen_ms: NOW_MS - 3_000,
        units_done: 420,
        held: 35,
        ..v1::WorkerStatus::default()
    }
}

fn workers() -> v1::WorkersResponse {
    let mut hot = worker("worker-2", "wgsl", "vulkan-10de-2335");
    hot.devices[0].temperature_c = Some(71.4);
    let quarantined = v1::WorkerStatus {
        quarantined: "its result for unit 3 is wrong".into(),
        ..worker("worker-3", "avx2", "cpu")
    };
    let draining =
        v1::WorkerStatus { draining: true, held: 1, ..worker("laptop", "scalar", "cpu") };
    let week = |owner: &str, units, counting_s| v1::Contribution {
        owner: owner.into(),
        workers: 1,
        units,
        counting_s,
    };
    v1::WorkersResponse {
        workers: vec![quarantined, hot, worker("worker-1", "avx512", "cpu"), draining],
        contributions: vec![week("anna", 1_200, 5_400.0), week("ben", 60, 1_800.0)],
    }
}

fn map() -> UnitMap {
    let cell = |from: usize, full: usize, k: usize| {
        if k < from {
            255
        } else if k < full {
            100
        } else {
            0
        }
    };
    let cells = |from, full| (0..1500).map(|k| cell(from, full, k)).collect::<Vec<u8>>();
    let response = v1::UnitMapResponse {
        job: vec![0xa9; 16],
        version: 1,
        units: 1500,
        units_per_cell: 1,
        done: cells(640, 740),
        verified: cells(230, 230),
        leased: (0..1500).map(|k| if (740..900).contains(&k) { 255 } else { 0 }).collect(),
        poisoned: vec![0; 1500],
    };
    UnitMap::new(response).expect("it is valid")
}

fn history() -> Input {
    let done = [0, 20, 60, 130, 210, 300, 330, 360, 450, 560, 690];
    let point = |(k, done): (usize, u64)| Point { at_ms: NOW_MS - 60_000 + 6_000 * k as u64, done };
    let points = done.into_iter().enumerate().map(point).collect();
    Input::History { job: "a9".repeat(16), points }
}

fn event(number: u64, level: v1::EventLevel, job: &[u8], text: &str) -> v1::Event {
    v1::Event {
        number,
        at_ms: NOW_MS - 30_000 + 1_000 * number,
        level: level.into(),
        job: job.to_vec(),
        text: text.into(),
        ..v1::Event::default()
    }
}

fn events() -> Vec<v1::Event> {
    use v1::EventLevel::{Error, Info, Warning};
    vec![
        event(1, Info, &[], "Worker worker-1 joined from 127.0.0.1"),
        event(2, Info, &[0xa9; 16], "Count of 21 queens submitted by local-operator, 1 500 units"),
        event(3, Warning, &[0xb1; 16], "Unit 7 set aside: a device failed: out of memory"),
        event(4, Error, &[], "Worker worker-3 put in quarantine: its result for unit 3 is wrong"),
    ]
}

/// Returns a screen with data of every kind.
fn screen(coloured: bool) -> Screen {
    let mut screen = Screen::new("queens.example.org:7878".into(), coloured);
    screen.zone = jiff::tz::TimeZone::UTC;
    for input in [
        Input::Status(Box::new(status())),
        Input::Workers(workers()),
        Input::Map(map()),
        history(),
        Input::Events(events()),
    ] {
        assert_eq!(screen.update(input, 0), None);
    }
    screen
}

fn press(screen: &mut Screen, keys: &[Key]) -> Vec<Action> {
    keys.iter().filter_map(|&key| screen.update(Input::Key(key), 0)).collect()
}

fn drawn(screen: &Screen, (width, height): (u16, u16), at_ms: u64) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is memory");
    terminal.draw(|frame| draw(frame, screen, at_ms)).expect("it is memory");
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let line = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..buffer.area.height).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}

/// Compares `now` with `file` of the repository, or records it there if that is requested.
fn assert_recorded(file: &str, now: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("NQUEENS_RECORD_SCREENS").is_some_and(|value| !value.is_empty()) {
        fs::write(&path, now).expect("the repository can be written");
    }
    // Git may have converted line endings.
    let recorded = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(recorded == now, "{file} is not what is drawn now:\n{now}");
}

fn assert_screen(name: &str, screen: &Screen, size: (u16, u16), at_ms: u64) {
    assert_recorded(&format!("tests/screens/{name}.txt"), &text(&drawn(screen, size, at_ms)));
}

#[test]
fn the_screen_shows_jobs_workers_units_rate_and_log() {
    assert_screen("wide", &screen(true), (120, 32), 2_000);
    assert_screen("usual", &screen(true), (80, 24), 2_000);
    assert_screen("small", &screen(true), (80, 14), 2_000);
    assert_screen("tiny", &screen(true), (39, 8), 2_000);
}

#[test]
fn percentages_and_times_left_are_whole_at_110_columns() {
    let mut response = status();
    let verifying = count(0xe5, 8, v1::JobState::Running, [30, 30, 10]);
    response.jobs.push(v1::JobStatus { checks_due: 9, ..verifying });
    let mut screen = screen(true);
    screen.update(Input::Status(Box::new(response)), 0);
    assert_screen("columns", &screen, (110, 32), 2_000);
    for width in [80, 110] {
        let shown = text(&drawn(&screen, (width, 32), 0));
        for row in [
            "a9a9a9a9   46.0 %  about 1 min 05 s left      count of 21",
            "e5e5e5e5  100.0 %  verifying (9 checks left)  count of 8",
            "c3c3c3c3   19.4 %  running                    first solution",
            "b1b1b1b1   12.5 %  paused                     count of 20",
        ] {
            assert!(shown.contains(row), "{row}\n{shown}");
        }
    }
}

#[test]
fn a_rate_of_zero_is_shown_as_such() {
    let mut screen = screen(true);
    let point = |k: u64| Point { at_ms: NOW_MS - 60_000 + 6_000 * k, done: 700 };
    let points = (11..20).map(point).collect();
    press(&mut screen, &[Key::Down, Key::Down]);
    screen.update(Input::History { job: "b1".repeat(16), points }, 0);
    let shown = text(&drawn(&screen, (120, 32), 0));
    assert!(shown.contains("Rate, 0 units/s"), "{shown}");
}

#[test]
fn an_empty_screen_says_what_to_do() {
    let mut empty = Screen::new("127.0.0.1:7878".into(), true);
    empty.zone = jiff::tz::TimeZone::UTC;
    let status = v1::StatusResponse { now_ms: NOW_MS, build: "0.1.0".into(), ..Default::default() };
    empty.update(Input::Status(Box::new(status)), 0);
    assert_screen("empty", &empty, (80, 24), 0);
    for key in "prcd".chars() {
        assert!(press(&mut empty, &[Key::Letter(key)]).is_empty());
    }
    assert!(
        press(
            &mut empty,
            &[Key::Up, Key::Down, Key::First, Key::Last, Key::Enter, Key::OtherTable]
        )
        .is_empty()
    );
}

#[test]
fn a_disputed_total_is_highlighted_and_the_job_can_be_controlled() {
    let mut response = status();
    let dispute = "the total 93 contradicts the published value 92; units that nobody has confirmed are being counted again";
    response.jobs.push(v1::JobStatus {
        checks_due: 20,
        dispute: dispute.into(),
        notes: vec![dispute.into()],
        ..count(0xd1, 8, v1::JobState::Disputed, [30, 30, 10])
    });
    let mut screen = screen(false);
    screen.update(Input::Status(Box::new(response)), 0);
    // It is listed with the running jobs.
    let place = screen.jobs.iter().position(|job| job.state == "disputed").expect("it is there");
    assert!(place < 3 && screen.jobs[place].needs_attention, "{place}");
    press(&mut screen, &[Key::First]);
    press(&mut screen, &vec![Key::Down; place]);
    assert_screen("disputed", &screen, (120, 32), 2_000);
    let orders = [('p', v1::JobState::Paused), ('r', v1::JobState::Running)];
    for (letter, state) in orders {
        let ordered = press(&mut screen, &[Key::Letter(letter)]);
        assert_eq!(ordered, [Action::Command(Command::SetState("d1".repeat(16), state))]);
    }
    let cancelled = press(&mut screen, &[Key::Letter('c'), Key::Letter('y')]);
    assert_eq!(
        cancelled,
        [Action::Command(Command::SetState("d1".repeat(16), v1::JobState::Cancelled))]
    );
}

#[test]
fn a_lost_connection_is_shown_and_the_last_data_stay() {
    let mut screen = screen(true);
    screen.update(Input::Disconnected("Connection refused".into()), 5_000);
    screen.update(Input::Disconnected("Connection refused".into()), 9_000);
    assert_screen("lost", &screen, (120, 32), 65_000);
    screen.update(Input::Status(Box::new(status())), 70_000);
    assert_eq!(screen.disconnected, None);
}

#[test]
fn keys_select_and_send_commands() {
    use Key::{Down, Enter, Escape, Last, Letter, OtherTable, Up};
    let mut screen = screen(true);
    let set = |job: &str, state| vec![Action::Command(Command::SetState(job.repeat(16), state))];
    assert_eq!(press(&mut screen, &[Letter('p')]), set("a9", v1::JobState::Paused));
    assert_eq!(press(&mut screen, &[Letter('r')]), set("a9", v1::JobState::Running));
    // A question that only the key y confirms.
    for no in [Letter('n'), Escape, Letter('q'), Enter, Down] {
        assert!(press(&mut screen, &[Letter('c'), no]).is_empty(), "{no:?}");
    }
    press(&mut screen, &[Letter('c')]);
    assert_screen("question", &screen, (120, 32), 0);
    assert_eq!(press(&mut screen, &[Letter('y')]), set("a9", v1::JobState::Cancelled));
    // The proof is next, then the paused job, then the cancelled one, which can only be resumed.
    assert_eq!(press(&mut screen, &[Down, Letter('p')]), set("c3", v1::JobState::Paused));
    assert_eq!(press(&mut screen, &[Letter('j'), Letter('r')]), set("b1", v1::JobState::Running));
    assert!(press(&mut screen, &[Last, Letter('p')]).is_empty());
    assert_eq!(
        screen.message,
        Message::Failed("job 92929292 (count of 17 queens) is cancelled".into())
    );
    assert!(press(&mut screen, &[Letter('c'), Letter('y')]).is_empty());
    assert_eq!(press(&mut screen, &[Letter('r')]), set("92", v1::JobState::Running));
    assert_eq!(
        press(&mut screen, &[Down, Up, Up, Up, Up, Letter('p')]),
        set("a9", v1::JobState::Paused)
    );
    // Workers by name: laptop, worker-1, worker-2, worker-3.
    let drained = press(&mut screen, &[OtherTable, Down, Down, Letter('d'), Letter('y')]);
    assert_eq!(drained, [Action::Command(Command::Drain("worker-2".into()))]);
    assert_eq!(press(&mut screen, &[Letter('q')]), [Action::End]);
    assert_eq!(press(&mut screen, &[Letter('c'), Key::End]), [Action::End]);
}

#[test]
fn help_and_report_cover_the_tables() {
    use Key::{Down, Enter, Escape, Letter};
    let mut screen = screen(true);
    press(&mut screen, &[Letter('?')]);
    assert_screen("keys", &screen, (120, 32), 0);
    press(&mut screen, &[Escape, Down, Down, Enter]);
    assert_screen("report", &screen, (120, 32), 0);
    press(&mut screen, &[Down]);
    let scrolled = text(&drawn(&screen, (120, 32), 0));
    assert!(!scrolled.contains("b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1  "), "{scrolled}");
    // Any other key goes back.
    assert!(press(&mut screen, &[Letter('x')]).is_empty());
    assert!(!text(&drawn(&screen, (120, 32), 0)).contains("scroll"));
}

#[test]
fn the_selection_is_kept_while_the_tables_change() {
    let mut screen = screen(true);
    press(&mut screen, &[Key::Down, Key::Down]);
    assert_eq!(screen.selected_job_with_units(), Some(&"b1".repeat(16)[..]));
    let mut later = status();
    later.jobs.push(count(0x01, 16, v1::JobState::Running, [64, 0, 0]));
    screen.update(Input::Status(Box::new(later)), 1_000);
    assert_eq!(screen.selected_job_with_units(), Some(&"b1".repeat(16)[..]));
    // Data of another job are not shown for this one.
    screen.update(Input::Map(map()), 1_000);
    screen.update(history(), 1_000);
    assert!(screen.map().is_none() && screen.history().is_empty());
    // If the selected row is gone, the first is selected.
    screen.update(
        Input::Status(Box::new(v1::StatusResponse {
            proofs: Vec::new(),
            jobs: vec![count(7, 9, v1::JobState::Running, [1, 0, 0])],
            ..status()
        })),
        2_000,
    );
    assert_eq!(screen.selected_job_with_units(), Some(&"07".repeat(16)[..]));
}

#[test]
fn the_list_of_workers_scrolls_with_the_selection() {
    let mut screen = screen(true);
    let many = (0..200).map(|k| worker(&format!("worker-{k:03}"), "avx2", "cpu")).collect();
    screen.update(Input::Workers(v1::WorkersResponse { workers: many, ..Default::default() }), 0);
    press(&mut screen, &[Key::OtherTable, Key::Last]);
    assert_screen("many", &screen, (100, 40), 0);
}

/// Names of devices, notes and events are untrusted.
#[test]
fn control_characters_in_text_do_not_change_the_layout() {
    let evil = "\u{1b}[2J\u{202e}\r\n\u{200b}\u{7}x";
    let mut screen = screen(true);
    let mut hostile = worker("evil", evil, evil);
    hostile.quarantined = evil.into();
    screen.update(
        Input::Workers(v1::WorkersResponse {
            workers: vec![hostile],
            contributions: vec![v1::Contribution {
                owner: evil.into(),
                counting_s: 1.0,
                ..Default::default()
            }],
        }),
        0,
    );
    screen.update(Input::Events(vec![event(9, v1::EventLevel::Info, &[1], evil)]), 0);
    let mut response = status();
    response.trouble = evil.into();
    response.jobs[2].notes = vec![evil.into()];
    screen.update(Input::Status(Box::new(response)), 0);
    press(&mut screen, &[Key::Enter]);
    for overlay in 0..2 {
        let shown = text(&drawn(&screen, (120, 40), 0));
        let bad = |letter: char| {
            letter != '\n' && (letter.is_control() || "\u{202e}\u{200b}".contains(letter))
        };
        assert!(!shown.contains(bad), "overlay {overlay}: {shown:?}");
        assert!(shown.contains("\u{fffd}[2J"), "{shown}");
        press(&mut screen, &[Key::Escape]);
    }
}

#[test]
fn without_colours_everything_is_readable() {
    let (with, without) = (drawn(&screen(true), (120, 32), 0), drawn(&screen(false), (120, 32), 0));
    assert_eq!(text(&with), text(&without));
    assert!(with.content().iter().any(|cell| cell.fg != Color::Reset));
    assert!(
        without.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    );
}

#[test]
fn a_screen_of_any_size_can_be_drawn() {
    let mut screen = screen(true);
    for overlay in [None, Some(Key::Letter('?')), Some(Key::Enter), Some(Key::Letter('c'))] {
        press(&mut screen, &[Key::Escape]);
        press(&mut screen, &overlay.into_iter().collect::<Vec<_>>());
        for width in [1, 39, 40, 41, 79, 100, 300] {
            for height in [1, 7, 8, 9, 10, 15, 23, 24, 43, 120] {
                drawn(&screen, (width, height), 0);
            }
        }
    }
}

/// The picture in the documentation is the wide screen in colour.
#[test]
fn the_picture_in_the_documentation_is_up_to_date() {
    assert_recorded("docs/images/top.svg", &svg(&drawn(&screen(true), (120, 32), 2_000)));
}

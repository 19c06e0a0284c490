//! First and most beautiful solutions on several workers: the result equals that of one machine,
//! with a certificate, whichever processes are killed and whichever workers lie.

use crate::support;

use std::path::Path;
use std::process::{Command, Stdio};

use nqueens::cluster::protocol::{TaskQuery, peer, v1};
use nqueens::solver::beautiful::{CancelToken, Searcher, SubtreeAnswer};
use support::program::{assert_refused, text};
use support::{
    Coordinator, NQUEENS, Process, Scratch, Worker, authority, eventually, printed, run,
};

const FAST: [&str; 2] = ["--sync", "1s"];

/// Starts a worker in its own process.
fn worker(coordinator: &Coordinator, data: &Path, arguments: &[&str]) -> Process {
    let join = coordinator.address.to_string();
    let mut command = Command::new(NQUEENS);
    command
        .args(["worker", "--threads", "1", "--join", &join, "--log-level", "error", "--data"])
        .arg(data);
    command.args(arguments);
    Process(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("starts"))
}

fn object(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("an object")
}

/// Returns the first solution found by one machine.
fn alone(n: &str) -> serde_json::Value {
    object(&printed(&["first", n, "--json", "--quiet"]))["solution"].take()
}

/// Returns the fingerprint of a most beautiful solution found by one machine.
fn fingerprint(n: &str) -> serde_json::Value {
    object(&printed(&["beautiful", n, "--json", "--quiet"]))["fingerprint"].take()
}

/// Makes one call as a worker.
fn prove(
    coordinator: &Coordinator,
    worker: &str,
    call: u64,
    holding: &[u64],
    answers: Vec<v1::TaskAnswer>,
) -> v1::ProveResponse {
    let request = v1::ProveRequest {
        peer: peer(),
        worker: worker.to_owned(),
        boot: 1,
        call,
        capacity: 1,
        threads: 1,
        holding: holding.to_vec(),
        answers,
        parts: true,
        heeds_full: true,
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let answer = runtime.block_on(async { coordinator.channel().proving().prove(request).await });
    answer.expect("an answer").into_inner()
}

/// Returns the status of the only proof.
fn proof(coordinator: &Coordinator) -> serde_json::Value {
    eventually("status", || {
        let output = run(&["status", "--json", "--data", coordinator.data()]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        Some(status["proofs"].as_array()?.last()?.clone())
    })
}

#[test]
fn two_workers_find_the_first_solution_and_its_certificate_is_accepted() {
    let scratch = Scratch::new("together");
    let data = scratch.path("data");
    drop(authority(&data));
    let coordinator = Coordinator::start(&data, &FAST);
    let submitted = printed(&["submit", "first", "30", "--data", coordinator.data()]);
    assert!(submitted.contains("submitted; nqueens status "), "{submitted}");
    let _workers = ["one", "two"].map(|name| {
        let token = printed(&["token", "create", "--data", coordinator.data()]);
        worker(&coordinator, &scratch.path(name), &["--name", name, "--token", token.trim()])
    });
    let file = scratch.file("certificate");
    let submit = ["submit", "first", "30", "--certificate", &file, "--data", coordinator.data()];
    let report = object(&printed(&[&submit[..], &["--json"]].concat()));
    assert_eq!((&report["state"], &report["proven"]), (&"finished".into(), &true.into()));
    assert_eq!(report["solution"], alone("30"));
    let checked = object(&printed(&["check", &file, "--json"]));
    assert_eq!(checked["solution"], report["solution"]);

    let reported = printed(&["status", "--data", coordinator.data()]);
    assert!(reported.contains("first solution of 30 queens, finished"), "{reported}");
    let listed = printed(&["jobs", "--data", coordinator.data()]);
    assert!(listed.contains("finished   first solution of 30 queens: 1 3 5 2 4 9 11"), "{listed}");
    let job = report["job"].as_str().expect("a name");
    assert_refused(&["cancel", job, "--data", coordinator.data()], 2, &["finished"]);
}

#[test]
fn two_workers_prove_the_most_beautiful_solution() {
    let scratch = Scratch::new("beautiful");
    let data = scratch.path("data");
    drop(authority(&data));
    let coordinator = Coordinator::start(&data, &FAST);
    let _workers = ["one", "two"].map(|name| {
        let token = printed(&["token", "create", "--data", coordinator.data()]);
        worker(&coordinator, &scratch.path(name), &["--name", name, "--token", token.trim()])
    });
    let file = scratch.file("certificate");
    let submit = [
        "submit",
        "beautiful",
        "84",
        "--certificate",
        &file,
        "--json",
        "--data",
        coordinator.data(),
    ];
    let report = object(&printed(&submit));
    assert_eq!((&report["state"], &report["proven"]), (&"finished".into(), &true.into()));
    assert_eq!(
        (&report["what"], &report["fingerprint"]),
        (&"beautiful".into(), &fingerprint("84"))
    );
    let by = report["by"].as_array().expect("shares");
    // How they share the tasks depends on time; the queue has its own tests.
    let searched = by.iter().filter(|share| share["nodes"] != "0").count();
    assert!((1..=2).contains(&searched), "{by:?}");
    let checked = object(&printed(&["check", &file, "--json"]));
    assert_eq!(
        (&checked["solution"], &checked["kind"]),
        (&report["solution"], &"beautiful".into())
    );

    let reported = printed(&["status", "--data", coordinator.data()]);
    assert!(reported.contains("most beautiful solution of 84 queens, finished"), "{reported}");
    assert!(reported.contains("fingerprint"), "{reported}");
    let listed = printed(&["jobs", "--data", coordinator.data()]);
    assert!(listed.contains("finished   most beautiful solution of 84 queens: "), "{listed}");
}

#[test]
fn a_drained_worker_gets_no_more_tasks_of_a_proof() {
    let scratch = Scratch::new("sent-home");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "first", "30", "--data", coordinator.data()]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let start =
        || runtime.block_on(async { Worker::new("weary", coordinator.channel()).sync().await });
    start().expect("it is known now");
    let mut number = 0;
    let mut ask = |worker: &str, holding: &[u64]| {
        number += 1;
        prove(&coordinator, worker, number, holding, Vec::new())
    };
    let task = eventually("task", || Some(ask("weary", &[]).tasks.first()?.task));
    printed(&["drain", "weary", "--data", coordinator.data()]);
    // It may keep its task; a task that it gives back is not leased to it again.
    let reply = ask("weary", &[task]);
    assert_eq!((reply.tasks.len(), reply.cancel.len(), reply.running_proofs), (0, 0, 1));
    let reply = ask("weary", &[]);
    assert_eq!((reply.tasks.len(), reply.running_proofs), (0, 0));
    // After a restart it is a new worker.
    start().expect("answered");
    assert_eq!(eventually("task", || Some(ask("weary", &[]).tasks.first()?.task)), task);
}

#[test]
fn a_most_beautiful_proof_resumes_when_the_coordinator_and_its_workers_are_killed() {
    let scratch = Scratch::new("beautiful-killed");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "beautiful", "84", "--data", coordinator.data()]);
    let mut one = worker(&coordinator, &scratch.path("one"), &[]);
    let searched = |coordinator: &Coordinator| {
        eventually("a part that was searched", || {
            let proof = proof(coordinator);
            let answered = proof["by"].as_array()?.iter().any(|share| share["queries"] != 0);
            (answered || proof["proven"] == true).then_some(proof)
        })
    };
    let seen = searched(&coordinator);
    // The status shows the progress of the search.
    if seen["proven"] != true {
        assert!(seen["level"]["cost"].as_u64() > Some(0), "{seen}");
        assert_eq!(seen["best"].as_array().expect("a board").len(), 84);
        assert_eq!(seen["best_fingerprint"].as_array().expect("costs").len(), 84);
    }
    one.kill();
    let two = worker(&coordinator, &scratch.path("two"), &[]);
    searched(&coordinator);
    coordinator.restart();
    let found = eventually("end of the proof", || {
        let proof = proof(&coordinator);
        (proof["proven"] == true).then_some(proof)
    });
    assert_eq!(found["fingerprint"], fingerprint("84"));
    drop(two);
}

#[test]
fn a_lie_about_a_subtree_is_detected_and_changes_nothing() {
    let scratch = Scratch::new("beautiful-liar");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "beautiful", "84", "--data", coordinator.data()]);
    let task = |name: &str| {
        let mut number = 0;
        let task = eventually("task", || {
            number += 1;
            prove(&coordinator, name, number, &[], vec![]).tasks.pop()
        });
        (task, number)
    };
    let answer = |task: &v1::Task, answer| v1::TaskAnswer {
        task: task.task,
        answer: Some(answer),
        ..Default::default()
    };
    let is_quarantined = |name: &str, number: &mut u64| {
        eventually("verdict", || {
            *number += 1;
            let why = prove(&coordinator, name, *number, &[], vec![]).quarantined;
            (!why.is_empty()).then_some(why)
        })
    };
    // An honest tree with one branch altered; and a solution with two queens exchanged.
    let (first, mut number) = task("grafter");
    let Ok(TaskQuery::Part(part)) = TaskQuery::try_from(&first) else { panic!("{first:?}") };
    assert_eq!((part.part.premises().n(), part.nodes > 0), (84, true));
    let tree = match Searcher::default().search(&part, &CancelToken::default()) {
        SubtreeAnswer::Tree(mut tree) => {
            tree.pop();
            tree
        }
        // There is a solution, so this is a lie too.
        _ => Vec::new(),
    };
    number += 1;
    let altered = v1::task_answer::Answer::Tree(tree);
    prove(&coordinator, "grafter", number, &[first.task], vec![answer(&first, altered)]);
    assert!(is_quarantined("grafter", &mut number).contains("its tree is wrong"));
    let (second, mut number) = task("painter");
    let mut columns: Vec<u32> =
        object(&printed(&["beautiful", "84", "--json", "--quiet"]))["solution"]
            .as_array()
            .expect("a solution")
            .iter()
            .map(|column| column.as_u64().expect("a column") as u32)
            .collect();
    columns.swap(0, 1);
    number += 1;
    let altered = v1::task_answer::Answer::Completion(v1::Columns { columns });
    prove(&coordinator, "painter", number, &[second.task], vec![answer(&second, altered)]);
    assert!(is_quarantined("painter", &mut number).contains("its solution is not a solution"));

    let _honest = worker(&coordinator, &scratch.path("honest"), &[]);
    let file = scratch.file("certificate");
    let submit = [
        "submit",
        "beautiful",
        "84",
        "--certificate",
        &file,
        "--json",
        "--data",
        coordinator.data(),
    ];
    let report = object(&printed(&submit));
    assert_eq!(report["fingerprint"], fingerprint("84"));
    let notes = report["notes"].to_string();
    assert!(notes.contains("grafter is in quarantine") && notes.contains("painter"), "{notes}");
    printed(&["check", &file]);
}

/// Submits a proof to a coordinator without workers, then pauses, resumes and cancels it. Returns
/// its name.
fn cancelled(coordinator: &Coordinator, scratch: &Scratch, what: &str, n: &str) -> String {
    let data = ["--data", coordinator.data()];
    let with = |words: &[&str]| printed(&[words, &data[..]].concat());
    let submitted = object(&with(&["submit", what, n, "--json"]));
    assert_eq!((&submitted["known"], &submitted["state"]), (&false.into(), &"running".into()));
    let job = submitted["job"].as_str().expect("a name");
    assert!(with(&["pause", job]).contains("is paused; it was running"));
    let again = object(&with(&["submit", what, n, "--json"]));
    assert_eq!((&again["known"], &again["state"]), (&true.into(), &"paused".into()));
    assert!(with(&["resume", job]).contains("is running; it was paused"));
    assert!(with(&["cancel", job]).contains("is cancelled; it was running"));
    let pause = [&["pause", job], &data[..]].concat();
    assert_refused(&pause, 2, &["is cancelled; it cannot be paused"]);
    let nowhere = scratch.file("no/such/folder");
    let args = ["submit", what, "8", "--certificate", &nowhere];
    assert_refused(&[&args[..], &data[..]].concat(), 7, &["cannot be written"]);
    job.to_owned()
}

#[test]
fn most_beautiful_proofs_are_paused_resumed_and_cancelled_like_other_jobs() {
    let scratch = Scratch::new("beautiful-paused");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    let data = ["--data", coordinator.data()];
    let with = |words: &[&str]| printed(&[words, &data[..]].concat());
    let job = cancelled(&coordinator, &scratch, "beautiful", "112");
    // The first solution of as many queens is a different job.
    let first = object(&with(&["submit", "first", "112", "--json"]));
    assert_ne!(first["job"], job);
    assert_refused(&[&["submit", "beautiful", "251"], &data[..]].concat(), 2, &["0 to 250"]);
    // Small boards need no worker.
    for n in ["0", "1", "2", "8"] {
        let file = scratch.file("certificate");
        let args = ["submit", "beautiful", n, "--certificate", &file, "--json"];
        let output = run(&[&args[..], &data[..]].concat());
        let report = object(text(&output.stdout));
        let alone = run(&["beautiful", n, "--json", "--quiet"]);
        assert_eq!(output.status.code(), alone.status.code(), "n = {n}");
        assert_eq!(report["solution"], object(text(&alone.stdout))["solution"], "n = {n}");
        printed(&["check", &file]);
    }
}

#[test]
fn a_stored_certificate_is_checked_before_it_is_served() {
    let scratch = Scratch::new("again");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    let submit = ["submit", "beautiful", "12", "--wait", "--json", "--data", coordinator.data()];
    let submit: Vec<String> = submit.iter().map(|&word| word.to_owned()).collect();
    let submit: Vec<&str> = submit.iter().map(String::as_str).collect();
    let report = object(&printed(&submit));
    coordinator.restart();
    let again = object(&printed(&submit));
    assert_eq!((&again["state"], &again["solution"]), (&"finished".into(), &report["solution"]));
    assert_eq!(again["certificate_sha256"], report["certificate_sha256"]);
    // The certificate of another proof in its place: valid by itself, but it proves something else.
    let other = scratch.file("other");
    printed(&["beautiful", "13", "--quiet", "--certificate", &other]);
    let job = report["job"].as_str().expect("a name");
    let place = scratch.path("data").join("proofs").join(job).join("certificate");
    std::fs::copy(&other, &place).expect("copied");
    coordinator.restart();
    let reported = eventually("verdict", || {
        let proof = proof(&coordinator);
        (proof["state"] == "paused").then_some(proof)
    });
    assert_eq!(
        (&reported["solution"], &reported["proven"]),
        (&serde_json::Value::Null, &false.into())
    );
    assert!(reported["notes"].to_string().contains("fails its check"), "{reported}");
    printed(&["resume", job, "--data", coordinator.data()]);
    let proved = object(&printed(&submit));
    assert_eq!((&proved["state"], &proved["solution"]), (&"finished".into(), &report["solution"]));
    assert_eq!(proved["certificate_sha256"], report["certificate_sha256"]);
}

#[test]
fn a_first_proof_resumes_when_the_coordinator_and_its_workers_are_killed() {
    let scratch = Scratch::new("killed");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "first", "44", "--data", coordinator.data()]);
    let mut one = worker(&coordinator, &scratch.path("one"), &[]);
    let refuted = |coordinator: &Coordinator, least: u64| {
        eventually("refuted prefixes", || {
            let proof = proof(coordinator);
            let enough = proof["prefixes_refuted"].as_u64()? >= least || proof["proven"] == true;
            enough.then_some(proof)
        })
    };
    refuted(&coordinator, 3);
    one.kill();
    let two = worker(&coordinator, &scratch.path("two"), &[]);
    refuted(&coordinator, 6);
    coordinator.restart();
    let found = eventually("end of the proof", || {
        let proof = proof(&coordinator);
        (proof["proven"] == true).then_some(proof)
    });
    assert_eq!(found["solution"], alone("44"));
    drop(two);
}

#[cfg(unix)]
#[test]
fn a_coordinator_that_stops_on_request_loses_no_refutation() {
    let scratch = Scratch::new("asked");
    let mut coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "first", "44", "--data", coordinator.data()]);
    let mut one = worker(&coordinator, &scratch.path("one"), &[]);
    let refuted = |coordinator: &Coordinator| {
        proof(coordinator)["prefixes_refuted"].as_u64().expect("a number")
    };
    eventually("refuted prefixes", || (refuted(&coordinator) >= 3).then_some(()));
    one.kill();
    // Submitted refutations are still being checked.
    let before = eventually("peace", || {
        let before = refuted(&coordinator);
        std::thread::sleep(std::time::Duration::from_millis(300));
        (refuted(&coordinator) == before).then_some(before)
    });
    coordinator.process.terminate();
    assert_eq!(coordinator.process.wait("end of the coordinator"), 0);
    coordinator.restart();
    // There is no worker, so all of it was saved.
    eventually("what was refuted", || (refuted(&coordinator) == before).then_some(()));
}

#[test]
fn a_liar_is_detected_and_quarantined() {
    let scratch = Scratch::new("liar");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "first", "20", "--data", coordinator.data()]);
    let call = |worker: &str, number, holding: &[u64], answers| {
        prove(&coordinator, worker, number, holding, answers)
    };
    let lie =
        |task: &v1::Task, answer| v1::TaskAnswer { task: task.task, answer, ..Default::default() };
    // One reports that there is no completion, with a wrong refutation; the other reports a wrong
    // completion.
    let refutation = v1::task_answer::Answer::Refutation(vec![3, 0, 0]);
    let attacked = v1::task_answer::Answer::Completion(v1::Columns { columns: (1..=20).collect() });
    for (name, answer) in [("refuter", refutation), ("completer", attacked)] {
        // An answer has no verdict if its task is no longer wanted, as when the search has just
        // begun again. So there is a lie for each task.
        let (mut number, mut lies) = (0, Vec::new());
        eventually("verdict", || {
            number += 1;
            let reply = call(name, number, &[], std::mem::take(&mut lies));
            for task in &reply.tasks {
                let query = TaskQuery::try_from(task).expect("a valid task");
                assert!(matches!(query, TaskQuery::Completion(query) if query.n == 20));
                lies.push(lie(task, Some(answer.clone())));
            }
            (!reply.quarantined.is_empty()).then_some(())
        });
        let reported = printed(&["workers", "--data", coordinator.data()]);
        assert!(!reported.is_empty());
    }
    // The tasks of a silent worker go to others, and a worker that gives up is not asked for ever.
    let idler = call("idler", 1, &[], vec![]).tasks.pop().expect("a task");
    call("idler", 2, &[idler.task], vec![lie(&idler, None)]);

    let _honest = worker(&coordinator, &scratch.path("honest"), &[]);
    let report =
        printed(&["submit", "first", "20", "--wait", "--json", "--data", coordinator.data()]);
    let report = object(&report);
    assert_eq!(report["solution"], alone("20"));
    let notes = report["notes"].to_string();
    assert!(notes.contains("refuter is in quarantine") && notes.contains("completer"), "{notes}");
    // The proof stays finished, and a released worker is accepted again.
    let status = object(&printed(&["status", "--json", "--data", coordinator.data()]));
    assert_eq!(status["proofs"][0]["state"], "finished");
    printed(&["release", "refuter", "--data", coordinator.data()]);
    assert_eq!(call("refuter", u64::MAX, &[], vec![]).quarantined, "");
}

/// A plausible lie: a search refutes the prefix. It is the truth about most prefixes, so the search
/// goes on with it until it is checked.
#[test]
fn workers_that_refute_everything_change_nothing() {
    let scratch = Scratch::new("refuters");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "first", "30", "--data", coordinator.data()]);
    let search = v1::task_answer::Answer::Refutation(vec![0]);
    let quarantined = |liar: &str| {
        let (mut holding, mut answers) = (Vec::new(), Vec::new());
        (1..1000).find_map(|number| {
            let mut reply =
                prove(&coordinator, liar, number, &holding, std::mem::take(&mut answers));
            let task = reply.tasks.pop().map(|task| task.task);
            holding = task.into_iter().collect();
            answers = holding
                .drain(..)
                .map(|task| v1::TaskAnswer {
                    task,
                    answer: Some(search.clone()),
                    ..Default::default()
                })
                .collect();
            (!reply.quarantined.is_empty()).then_some(reply.quarantined)
        })
    };
    for liar in ["a", "b", "c", "d", "e"] {
        let why = quarantined(liar).expect("a reason");
        assert!(why.contains("its refutation is wrong"), "{why}");
    }
    let _honest = worker(&coordinator, &scratch.path("honest"), &[]);
    let report =
        printed(&["submit", "first", "30", "--wait", "--json", "--data", coordinator.data()]);
    assert_eq!(object(&report)["solution"], alone("30"));
}

#[test]
fn proofs_are_paused_resumed_and_cancelled_like_other_jobs() {
    let scratch = Scratch::new("paused");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    let data = ["--data", coordinator.data()];
    let with = |words: &[&str]| printed(&[words, &data[..]].concat());
    cancelled(&coordinator, &scratch, "first", "26");
    // Submitting it again resumes it.
    let again = object(&with(&["submit", "first", "26", "--json"]));
    assert_eq!((&again["known"], &again["state"]), (&true.into(), &"running".into()));
    let unproved = scratch.file("unproved");
    let output = run(&["submit", "first", "129", "--certificate", &unproved, data[0], data[1]]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(!Path::new(&unproved).exists());
    assert_refused(&[&["submit", "first", "x"], &data[..]].concat(), 2, &["0 to 128"]);
    assert_refused(&[&["status", "ffff"], &data[..]].concat(), 2, &["no job begins with 'ffff'"]);
}

#[test]
fn an_idle_worker_proves_before_it_ends() {
    let scratch = Scratch::new("idle");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    for n in ["0", "3", "12"] {
        printed(&["submit", "first", n, "--data", coordinator.data()]);
    }
    let mut one = worker(&coordinator, &scratch.path("one"), &["--exit-when-idle"]);
    assert_eq!(one.wait("end of the worker"), 0);
    let status = object(&printed(&["status", "--json", "--data", coordinator.data()]));
    let solutions: Vec<_> =
        status["proofs"].as_array().expect("proofs").iter().map(|p| &p["solution"]).collect();
    assert_eq!(*solutions[0], serde_json::json!([]));
    assert_eq!(*solutions[1], serde_json::Value::Null);
    assert_eq!(*solutions[2], alone("12"));
}

#[test]
fn a_worker_of_a_newer_version_is_notified_and_never_quarantined() {
    let scratch = Scratch::new("newer");
    let coordinator = Coordinator::start(&scratch.path("data"), &FAST);
    printed(&["submit", "first", "20", "--data", coordinator.data()]);
    let call =
        |number, holding: &[u64], answers| prove(&coordinator, "newer", number, holding, answers);
    // A refutation with a step that this version does not know.
    let task = call(1, &[], vec![]).tasks.pop().expect("a task");
    let answer = Some(v1::task_answer::Answer::Refutation(vec![200]));
    call(2, &[], vec![v1::TaskAnswer { task: task.task, answer, ..Default::default() }]);
    let mut number = 2;
    let reported = eventually("note about its version", || {
        number += 1;
        let reply = call(number, &[], vec![]);
        assert_eq!(reply.quarantined, "");
        (!reply.unreadable.is_empty()).then_some(reply)
    });
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        reported.unreadable.contains("kind 200") && reported.unreadable.contains(version),
        "{}",
        reported.unreadable
    );
    // It gets no more tasks of this kind, however often it asks.
    assert_eq!(reported.tasks.len() + call(number + 1, &[], vec![]).tasks.len(), 0);
    let _honest = worker(&coordinator, &scratch.path("honest"), &[]);
    let report =
        printed(&["submit", "first", "20", "--wait", "--json", "--data", coordinator.data()]);
    let report = object(&report);
    assert_eq!(report["solution"], alone("20"));
    assert!(report["notes"].to_string().contains("answers of newer cannot be read"), "{report}");
    assert!(!report["notes"].to_string().contains("in quarantine"), "{report}");
}

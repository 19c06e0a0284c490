//! News for people who do not look: a command or a web address is told when a job is over, and when something is wrong.
//!
//! News are told on a thread of their own, one after the other; nothing waits for them. What cannot be told is logged.

use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, SyncSender};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Whom to tell.
#[derive(Clone, Debug, Default)]
pub struct Notify {
    /// A command for the shell. It has the news in NQUEENS_NEWS_KIND and NQUEENS_NEWS_TEXT, and as JSON to read.
    pub command: Option<String>,
    /// An address to which the JSON is posted.
    pub url: Option<String>,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A job is finished.
    Finished,
    /// A job's total cannot be, or is not the published one.
    Disputed,
    /// A unit was set aside.
    Poisoned,
    /// A worker is in quarantine.
    Quarantined,
    /// The ledger cannot be written, or something else is wrong with the coordinator.
    Trouble,
}

/// One piece of news.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Notification {
    pub(super) kind: Kind,
    /// The job's name, if it is about one.
    pub(super) job: Option<String>,
    /// The worker's name, if it is about one.
    pub(super) worker: Option<String>,
    /// For people: what has happened, in one line.
    pub(super) text: String,
}

/// Tells news.
#[derive(Clone, Debug, Default)]
pub(super) struct Notifier {
    sender: Option<SyncSender<Notification>>,
}

impl Notifier {
    /// Starts its thread, if there is anybody to tell. It ends with the last clone.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(notify: Notify) -> io::Result<Self> {
        /// More are dropped: whoever is that slow hears enough.
        const MOST_WAITING: usize = 256;
        if notify.command.is_none() && notify.url.is_none() {
            return Ok(Self::default());
        }
        let (sender, notifications) = mpsc::sync_channel::<Notification>(MOST_WAITING);
        std::thread::Builder::new().name("news".into()).spawn(move || {
            for notifications in notifications {
                notify.tell(&notifications);
            }
        })?;
        Ok(Self { sender: Some(sender) })
    }

    /// Has something told.
    pub(super) fn tell(&self, notifications: Notification) {
        if let Some(sender) = &self.sender
            && let Err(error) = sender.try_send(notifications)
        {
            tracing::warn!("news are not told: {error}");
        }
    }
}

#[cfg(test)]
impl Notifier {
    /// Creates one, and what it tells.
    pub(super) fn heard() -> (Self, mpsc::Receiver<Notification>) {
        let (sender, notifications) = mpsc::sync_channel(64);
        (Self { sender: Some(sender) }, notifications)
    }
}

impl Notify {
    fn tell(&self, notifications: &Notification) {
        let json = serde_json::to_string(notifications).expect("strings serialise");
        if let Some(command) = &self.command
            && let Err(error) = run(command, notifications, &json, PATIENCE)
        {
            tracing::warn!("the command for news failed: {error}");
        }
        if let Some(url) = &self.url
            && let Err(error) = post(url, &json)
        {
            tracing::warn!("news could not be posted: {error}");
        }
    }
}

/// How long a command or a post may take.
const PATIENCE: Duration = Duration::from_secs(30);

fn run(command: &str, notifications: &Notification, json: &str, patience: Duration) -> io::Result<()> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let kind = serde_json::to_value(notifications.kind).ok();
    let kind = kind.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
    let mut shell = Command::new(shell);
    shell
        .args([flag, command])
        .env("NQUEENS_NEWS_KIND", kind)
        .env("NQUEENS_NEWS_TEXT", &notifications.text)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A group of its own, so that what it starts can be ended with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let mut child = shell.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A command need not read.
        let _ = input.write_all(json.as_bytes()).and_then(|()| input.write_all(b"\n"));
    }
    wait(&mut child, patience)
}

fn wait(child: &mut Child, patience: Duration) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(status.to_string())),
            None if began.elapsed() > patience => {
                end(child);
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Ends a command and, on Unix, whatever it has started that is still in its group.
fn end(child: &mut Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, kill_process_group};
        let _ = kill_process_group(rustix::process::Pid::from_child(child), Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn post(url: &str, json: &str) -> Result<(), ureq::Error> {
    /// An address may be away for a moment.
    const TRIES: u32 = 3;
    let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build();
    let agent = ureq::Agent::new_with_config(config);
    let mut tries = 1;
    loop {
        match agent.post(url).content_type("application/json").send(json) {
            Ok(_) => return Ok(()),
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_secs(1 << tries)),
        }
        tries += 1;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_all_that_it_has_started() {
        let late = std::env::temp_dir().join(format!("nqueens-late-{}", std::process::id()));
        let command = format!("(sleep 1; touch '{}') & sleep 1000", late.display());
        let notifications =
            Notification { kind: Kind::Trouble, job: None, worker: None, text: "late".into() };
        let error = run(&command, &notifications, "{}", Duration::from_millis(1)).expect_err("it takes long");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!late.exists(), "something went on");
    }
}

//! Notifications for operators: a command or a URL is notified when a job ends or something is
//! wrong.
//!
//! Notifications are sent one after the other on a separate thread, and nothing waits for them.
//! Failures are logged.

use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, SyncSender};
use std::time::{Duration, Instant};

use serde::Serialize;

/// The recipients of notifications.
#[derive(Clone, Debug, Default)]
pub struct Notify {
    /// A shell command. It gets the notification in the environment variables `NQUEENS_NEWS_KIND`
    /// and `NQUEENS_NEWS_TEXT`, and as JSON on standard input.
    pub command: Option<String>,
    /// A URL to which the JSON is posted.
    pub url: Option<String>,
}

/// The kind of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NotificationKind {
    /// A job is finished.
    Finished,
    /// The total of a job is impossible or contradicts the published value.
    Disputed,
    /// A unit was set aside.
    Poisoned,
    /// A worker is in quarantine.
    Quarantined,
    /// The ledger cannot be written, or something else is wrong with the coordinator.
    Trouble,
}

/// A notification.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Notification {
    pub(super) kind: NotificationKind,
    /// The name of the job, if the notification concerns one.
    pub(super) job: Option<String>,
    /// The name of the worker, if the notification concerns one.
    pub(super) worker: Option<String>,
    /// A one-line description for operators.
    pub(super) text: String,
}

/// A handle to the thread that sends notifications.
#[derive(Clone, Debug, Default)]
pub(super) struct Notifier {
    sender: Option<SyncSender<Notification>>,
}

impl Notifier {
    /// Starts the thread, if there is a recipient. It ends when the last clone is dropped.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be spawned.
    pub(super) fn start(notify: Notify) -> io::Result<Self> {
        /// The capacity of the queue. Further notifications are dropped.
        const MOST_WAITING: usize = 256;
        if notify.command.is_none() && notify.url.is_none() {
            return Ok(Self::default());
        }
        let (sender, notifications) = mpsc::sync_channel::<Notification>(MOST_WAITING);
        std::thread::Builder::new().name("notifications".into()).spawn(move || {
            for notification in notifications {
                notify.deliver(&notification);
            }
        })?;
        Ok(Self { sender: Some(sender) })
    }

    /// Queues a notification.
    pub(super) fn send(&self, notification: Notification) {
        if let Some(sender) = &self.sender
            && let Err(error) = sender.try_send(notification)
        {
            tracing::warn!("a notification was dropped: {error}");
        }
    }
}

#[cfg(test)]
impl Notifier {
    /// Creates a notifier and the receiver of its notifications.
    pub(super) fn for_test() -> (Self, mpsc::Receiver<Notification>) {
        let (sender, notifications) = mpsc::sync_channel(64);
        (Self { sender: Some(sender) }, notifications)
    }
}

impl Notify {
    fn deliver(&self, notification: &Notification) {
        let json = serde_json::to_string(notification).expect("strings serialise");
        if let Some(command) = &self.command
            && let Err(error) = run(command, notification, &json, TIMEOUT)
        {
            tracing::warn!("the notification command failed: {error}");
        }
        if let Some(url) = &self.url
            && let Err(error) = post(url, &json)
        {
            tracing::warn!("a notification could not be posted: {error}");
        }
    }
}

/// The time limit of a command, or of one attempt to post.
const TIMEOUT: Duration = Duration::from_secs(30);

fn run(
    command: &str,
    notification: &Notification,
    json: &str,
    timeout: Duration,
) -> io::Result<()> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let kind = serde_json::to_value(notification.kind).ok();
    let kind = kind.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
    let mut shell = Command::new(shell);
    shell
        .args([flag, command])
        .env("NQUEENS_NEWS_KIND", kind)
        .env("NQUEENS_NEWS_TEXT", &notification.text)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // A separate process group, so that child processes are killed together with the command.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let mut child = shell.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // The command need not read its input.
        let _ = input.write_all(json.as_bytes()).and_then(|()| input.write_all(b"\n"));
    }
    wait(&mut child, timeout)
}

fn wait(child: &mut Child, timeout: Duration) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(status.to_string())),
            None if began.elapsed() > timeout => {
                kill(child);
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Kills a command and, on Unix, all processes that are still in its group.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    {
        use rustix::process::{Signal, kill_process_group};
        let _ = kill_process_group(rustix::process::Pid::from_child(child), Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn post(url: &str, json: &str) -> Result<(), ureq::Error> {
    /// The number of attempts: a server may be unavailable for a moment.
    const TRIES: u32 = 3;
    let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).build();
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
    fn a_command_that_takes_too_long_is_killed_with_its_child_processes() {
        let late = std::env::temp_dir().join(format!("nqueens-late-{}", std::process::id()));
        let command = format!("(sleep 1; touch '{}') & sleep 1000", late.display());
        let notification = Notification {
            kind: NotificationKind::Trouble,
            job: None,
            worker: None,
            text: "late".into(),
        };
        let error = run(&command, &notification, "{}", Duration::from_millis(1))
            .expect_err("it takes long");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!late.exists(), "a child process survived");
    }
}

//! Logs: what a service that runs for weeks tells on stderr.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How to log.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Logs {
    /// How logs are written to stderr: text for people, json for programs.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    log_format: Format,
    /// What is logged: error, warn, info or debug, each with those before it.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Level::Info)]
    log_level: Level,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl Logs {
    /// From now on, what is logged goes to stderr.
    pub(super) fn start(self) {
        let level = match self.log_level {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
        };
        let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let builder = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_target(false)
            .with_ansi(colours)
            // A log that cannot be written, on a disk that is full, is no reason to stop.
            .log_internal_errors(false)
            .with_writer(std::io::stderr);
        // What libraries do with each frame helps nobody here.
        let ours = || {
            Targets::new().with_target("nqueens", level).with_default(level.min(LevelFilter::WARN))
        };
        // Whoever has set up logs before keeps them.
        let _ = match self.log_format {
            Format::Text => builder.finish().with(ours()).try_init(),
            Format::Json => builder.json().flatten_event(true).finish().with(ours()).try_init(),
        };
    }
}

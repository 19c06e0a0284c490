//! The logs of services, on stderr.

use std::io::IsTerminal;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The options of logging.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Logs {
    /// The format of the log on stderr.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    log_format: Format,
    /// The least severe level that is logged.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level())]
    log_level: LevelFilter,
    /// Log more; the same as --log-level debug.
    #[arg(short, long, conflicts_with = "log_level")]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

fn level() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(["error", "warn", "info", "debug"])
        .try_map(|name| name.parse::<LevelFilter>())
}

impl Logs {
    /// Installs the logger, which writes to stderr.
    pub(super) fn start(self) {
        let level = if self.verbose { LevelFilter::DEBUG } else { self.log_level };
        let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let builder = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_target(false)
            .with_ansi(colours)
            // A log that cannot be written, for example on a full disk, must not stop the service.
            .log_internal_errors(false)
            .with_writer(std::io::stderr);
        // The debug messages of libraries are not logged.
        let ours = || {
            Targets::new().with_target("nqueens", level).with_default(level.min(LevelFilter::WARN))
        };
        // A logger that is already installed is kept.
        let _ = match self.log_format {
            Format::Text => builder.finish().with(ours()).try_init(),
            Format::Json => builder.json().flatten_event(true).finish().with(ours()).try_init(),
        };
    }
}

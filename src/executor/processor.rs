//! The name of the processor.

use std::sync::OnceLock;

/// Returns the processor's model name, or the architecture if the name is unknown.
pub fn processor() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let model = fields.find(|(field, _)| field.trim() == "model name");
        model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
    })
}

//! The `nqueens` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(all(feature = "gpu", target_os = "linux"))]
    restart_without_device_select();
    nqueens::cli::main(std::env::args_os())
}

/// Restarts the program without Mesa's device-select layer if there is no session of a desktop.
///
/// That layer asks the compositor of the session which GPU it uses. Without XDG_RUNTIME_DIR it
/// prints an error to stderr for each adapter that is listed, although all devices work. A program
/// cannot change its own environment safely, so it replaces itself.
#[cfg(all(feature = "gpu", target_os = "linux"))]
fn restart_without_device_select() {
    use std::env;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;
    let is_set = |name| env::var_os(name).is_some();
    if is_set("XDG_RUNTIME_DIR") || is_set("NODEVICE_SELECT") {
        return;
    }
    let Ok(program) = env::current_exe() else { return };
    let mut arguments = env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    // It returns only if it fails, and then the layer may print its lines.
    let _ = command.args(arguments).env("NODEVICE_SELECT", "1").exec();
}

//! Flags that are not on the command line are read from environment variables and from a file, with
//! the precedence that the README documents.

use crate::support::program;

use std::fs;

use program::{Scratch, assert_refused, nqueens, printed, text};

fn object(output: &str) -> serde_json::Value {
    serde_json::from_str(output).expect("an object")
}

#[test]
fn the_command_line_precedes_variables_and_variables_precede_the_file() {
    let scratch = Scratch::new("configured");
    let file = scratch.file("config.toml");
    fs::write(
        &file,
        "kernel = 'generic'\n[count]\nkernel = 'scalar'\njson = true\nplace = ['1,2', '2,4']\n",
    )
    .expect("written");
    let counted = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = nqueens(words);
        command.env("NQUEENS_CONFIG", &file).envs(variables.iter().copied());
        let output = command.output().expect("runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        object(text(&output.stdout))
    };
    let by_file = counted(&["count", "6"], &[]);
    assert_eq!((&by_file["kernel"], &by_file["solutions"]), (&"scalar".into(), &"1".into()));
    let by_all = counted(&["count", "6"], &[("NQUEENS_KERNEL", "reference")]);
    assert_eq!(by_all["kernel"], "reference");
    let by_own = counted(
        &["count", "6"],
        &[("NQUEENS_KERNEL", "reference"), ("NQUEENS_COUNT_KERNEL", "textbook")],
    );
    assert_eq!(by_own["kernel"], "textbook");
    let by_flag = counted(
        &["count", "6", "--kernel", "generic", "--place", "1,3"],
        &[("NQUEENS_KERNEL", "scalar")],
    );
    assert_eq!(
        (&by_flag["kernel"], &by_flag["placed"]),
        (&"generic".into(), &serde_json::json!([[1, 3]]))
    );
    let named = object(&printed(&["--config", &file, "count", "6"]));
    assert_eq!(named["kernel"], "scalar");
}

#[test]
fn config_show_names_the_source_of_each_value() {
    let scratch = Scratch::new("shown");
    let file = scratch.file("config.toml");
    fs::write(&file, "[worker]\nthreads = 2\ntoken = 'secret'\n").expect("written");
    let mut command = nqueens(&["config", "show", "worker", "--json", "--config", &file]);
    let output = command.env("NQUEENS_HOURS", "22:00-06:00").output().expect("runs");
    let shown = object(text(&output.stdout));
    assert_eq!(shown["file"], file);
    let from = |flag: &str| {
        let settings = shown["settings"].as_array().expect("an array");
        let one = settings.iter().find(|shown| shown["flag"] == flag).expect(flag);
        (
            one["values"][0].as_str().expect("text").to_owned(),
            one["from"].as_str().expect("text").to_owned(),
        )
    };
    assert_eq!(from("threads"), ("2".into(), file.clone()));
    assert_eq!(from("hours"), ("22:00-06:00".into(), "NQUEENS_HOURS".into()));
    assert_eq!(from("drain-timeout"), ("30s".into(), "built in".into()));
    assert!(!text(&output.stdout).contains("secret"));
    let all = printed(&["config", "show"]);
    assert!(
        all.starts_with("no configuration file\n") && all.contains("\ncount --kernel auto"),
        "{all}"
    );
}

#[test]
fn an_invalid_file_is_refused_before_anything_runs() {
    let scratch = Scratch::new("unusable");
    let file = scratch.file("config.toml");
    let count = ["--config", &file, "count", "8"];
    assert_refused(&count, 7, &[&file, "invalid configuration file"]);
    for (content, why) in [
        ("threads = ", "invalid configuration file"),
        ("[count]\nthread = 1\n", "nqueens count does not have a flag --thread"),
        ("[conut]\n", "there is no command 'nqueens conut'"),
    ] {
        fs::write(&file, content).expect("written");
        assert_refused(&count, 7, &[why]);
    }
    fs::write(&file, "[count]\nthreads = 'many'\n").expect("written");
    assert_refused(&count, 2, &["invalid number of threads 'many'", "nqueens config show"]);
    assert_refused(&["config", "show", "conut"], 2, &["there is no command 'conut'"]);
}

#[test]
fn help_works_with_an_invalid_file() {
    let scratch = Scratch::new("helpful");
    let folder = scratch.path("nqueens");
    fs::create_dir_all(&folder).expect("created");
    fs::write(folder.join("config.toml"), [b'n', 0xff]).expect("written");
    let run = |words: &[&str]| {
        let mut command = nqueens(words);
        command.env("XDG_CONFIG_HOME", scratch.path(".")).env("HOME", scratch.path("."));
        command.output().expect("runs")
    };
    for words in [&["--help"][..], &["--version"], &["count", "--help"], &["help", "count"]] {
        let output = run(words);
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{words:?}: {}",
            text(&output.stderr)
        );
    }
    let output = run(&["count", "8"]);
    if cfg!(target_os = "linux") {
        assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("invalid configuration file"));
    }
}

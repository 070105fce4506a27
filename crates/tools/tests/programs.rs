//! The installed programs, as a user calls them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An installation in a temporary directory, removed at the end.
struct Installation(PathBuf);

impl Installation {
    fn new(name: &str) -> Installation {
        let directory = std::env::temp_dir().join(format!("parnass-tools-{name}-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("p/bin")).unwrap();
        std::fs::create_dir_all(directory.join("elsewhere")).unwrap();
        let directory = directory.canonicalize().unwrap();
        for (program, built) in
            [("mpicc", env!("CARGO_BIN_EXE_mpicc")), ("mpicxx", env!("CARGO_BIN_EXE_mpicxx"))]
        {
            let installed = directory.join("p/bin").join(program);
            // By a process of its own: what is open for writing here is so in whatever another test starts meanwhile, and could not be run.
            assert!(Command::new("cp").arg(built).arg(&installed).status().unwrap().success());
            symlink(installed, directory.join("elsewhere").join(program)).unwrap();
        }
        Installation(directory)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.0.join(program));
        for variable in ["PARNASS_CC", "MPICC_CC", "PARNASS_CXX", "MPICXX_CXX"] {
            command.env_remove(variable);
        }
        command.args(arguments).env("CC", "mpicc").output().unwrap()
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn an_installation_can_be_moved_and_linked_to() {
    let installation = Installation::new("moved");
    let prefix = installation.0.join("p");
    let expected = format!("-I{0}/include -L{0}/lib -Wl,-rpath,{0}/lib -lmpi_abi", prefix.display());
    for program in ["p/bin/mpicc", "elsewhere/mpicc"] {
        let shown = text(&installation.run(program, &["-show"]));
        let (compiler, rest) = shown.split_once(' ').unwrap();
        assert!(["cc", "gcc", "clang"].contains(&compiler), "{shown}");
        assert_eq!(rest, expected);
    }
    assert!(text(&installation.run("elsewhere/mpicxx", &["-show"])).starts_with("c++ "));
}

#[test]
fn the_compiler_is_called_and_its_code_passed_on() {
    let installation = Installation::new("called");
    let prefix = installation.0.join("p");
    write(&prefix.join("include/mpi.h"), "#define ANSWER 42\n");
    let source = installation.0.join("a.c");
    write(&source, "#include <mpi.h>\nint answer(void) { return ANSWER; }\n");
    let object = installation.0.join("a.o");
    let paths = [source.to_str().unwrap(), object.to_str().unwrap()];
    for program in ["p/bin/mpicc", "p/bin/mpicxx"] {
        let output = installation.run(program, &["-c", paths[0], "-o", paths[1]]);
        assert!(output.status.success(), "{output:?}");
        assert!(object.exists());
        std::fs::remove_file(&object).unwrap();
    }
    write(&source, "not a program\n");
    assert!(!installation.run("p/bin/mpicc", &["-c", paths[0], "-o", paths[1]]).status.success());
    assert!(installation.run("p/bin/mpicc", &["--version"]).status.success());
}

#[test]
fn another_compiler_can_be_named() {
    let installation = Installation::new("named");
    let run = |variable: &str, value: &str, arguments: &[&str]| {
        let mut command = Command::new(installation.0.join("p/bin/mpicc"));
        command.env_remove("PARNASS_CC").env_remove("MPICC_CC").env(variable, value);
        command.args(arguments).output().unwrap()
    };
    assert!(text(&run("PARNASS_CC", "ccache icx", &["-show", "-c", "a.c"])).starts_with("ccache icx -I"));
    assert!(text(&run("MPICC_CC", "tcc", &["-show"])).starts_with("tcc "));
    let output = run("PARNASS_CC", "/no/such/compiler", &["a.c"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("/no/such/compiler cannot be run") && errors.contains("PARNASS_CC"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_parnass_command_tells_what_there_is() {
    let run =
        |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_parnass")).args(arguments).output().unwrap();
    let info = text(&run(&["info"]));
    for part in ["Parnass ", "direct copy", "how a message travels", "allreduce"] {
        assert!(info.contains(part), "{info}");
    }
    let json: serde_json::Value = serde_json::from_str(&text(&run(&["info", "--json"]))).unwrap();
    assert_eq!(json["standard"], "5.0");
    let missing = text(&run(&["info", "--missing"]));
    assert_eq!(missing.lines().count(), json["missing"].as_array().unwrap().len());
    assert!(run(&["--version"]).status.success());
    assert!(!run(&["nonsense"]).status.success());
}

/// Runs `parnass bench` in a session of its own; the child and the folder that it may write to.
fn bench(name: &str, arguments: &[&str]) -> (std::process::Child, PathBuf) {
    let folder = std::env::temp_dir().join(format!("parnass-bench-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_parnass"));
    command.arg("bench").args(arguments).current_dir(&folder);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    (command.spawn().unwrap(), folder)
}

#[test]
fn a_result_file_becomes_a_report_and_is_compared_with_another() {
    let folder = std::env::temp_dir().join(format!("parnass-bench-files-{}", std::process::id()));
    let file = |name: &str, value: f64| {
        let text = serde_json::json!({
            "form": 1, "command": "parnass bench", "machine": "2 cores", "date": "2026-01-02", "rounds": 1,
            "milliseconds": 50, "missing": [], "notes": [],
            "libraries": [{ "name": "parnass", "version": "0.1.0", "settings": "none" }],
            "rows": [{
                "name": "half-round-trip", "bytes": 8, "unit": "us", "better": "less",
                "medians": { "parnass": value }, "values": { "parnass": [value] },
            }],
        });
        write(&folder.join(name), &text.to_string());
        folder.join(name).to_str().unwrap().to_owned()
    };
    let (before, now) = (file("before.json", 1.0), file("now.json", 2.0));
    let (child, written) = bench("show", &["--show", &now, "--baseline", &before, "--output", "report"]);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = text(&output);
    let line = said.lines().rev().find(|line| line.starts_with("half round trip")).unwrap();
    assert!(line.contains("1.00") && line.ends_with("2.00"), "{said}");
    let page = std::fs::read_to_string(written.join("report/report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("2026-01-02"), "{page}");
    for folder in [folder, written] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn what_bench_cannot_do_is_said() {
    for (arguments, expected) in [
        (&["--only", "nonsense"][..], "no yardstick is called so"),
        (&["--show", "/no/such/file"], "/no/such/file"),
        // The program under test lies in no installation.
        (&["--alone"], "this program belongs to no installation"),
    ] {
        let (child, folder) = bench("wrong", arguments);
        let output = child.wait_with_output().unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(expected), "{errors}");
        assert_eq!(output.status.code(), Some(1));
    }
}

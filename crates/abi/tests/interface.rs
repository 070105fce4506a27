//! The C interface as C sees it: the symbols of the library, the header under a C and a C++ compiler, programs of one
//! rank that are linked with the library.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/abi lies in the workspace")
        .to_path_buf()
}

/// The shared library that was built with this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("libmpi_abi.so");
    assert!(library.exists(), "{} is not there", library.display());
    library
}

/// A directory of this test's own below target/, with the library under the name that programs look for.
fn scratch(name: &str) -> PathBuf {
    let directory = library().with_file_name(format!("interface-{name}"));
    std::fs::create_dir_all(&directory).unwrap();
    for link in ["libmpi_abi.so.1", "libmpi_abi.so"] {
        let link = directory.join(link);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(library(), link).unwrap();
    }
    directory
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn succeed(command: &mut Command) -> String {
    let output = run(command);
    let text = text(&output);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Compiles a program of tests/programs and links it with the library.
fn compile(directory: &Path, name: &str, more: &[&str]) -> PathBuf {
    let program = directory.join(name);
    succeed(
        Command::new("cc")
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
            .arg(&program)
            .arg(root().join(format!("crates/abi/tests/programs/{name}.c")))
            .arg(format!("-I{}", root().join("include").display()))
            .args(more)
            .arg(format!("-L{}", directory.display()))
            .arg("-lmpi_abi")
            .arg(format!("-Wl,-rpath,{}", directory.display())),
    );
    program
}

/// A program as a world of one, that is stopped if it hangs.
fn alone(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg("60").arg(program);
    for variable in ["PARNASS_JOB", "PARNASS_RANK", "LD_PRELOAD"] {
        command.env_remove(variable);
    }
    command
}

fn procedures() -> BTreeSet<String> {
    let table = std::fs::read_to_string(root().join("spec/procedures.jsonl")).unwrap();
    table.lines().map(|line| line.split('"').nth(3).expect("a name").to_owned()).collect()
}

#[test]
fn every_procedure_is_exported_twice_and_nothing_else_is_visible() {
    let listed = succeed(Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(library()));
    let exported: BTreeSet<String> =
        listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    let names = procedures();
    assert_eq!(names.len(), 664);
    const REMOVED: [&str; 10] = [
        "MPI_Address",
        "MPI_Errhandler_create",
        "MPI_Errhandler_get",
        "MPI_Errhandler_set",
        "MPI_Type_extent",
        "MPI_Type_hindexed",
        "MPI_Type_hvector",
        "MPI_Type_lb",
        "MPI_Type_struct",
        "MPI_Type_ub",
    ];
    // For libraries with another interface on top (crates/abi/src/extensions.rs).
    const EXTENSIONS: [&str; 7] = [
        "MPIX_Comm_create_errhandler_extra",
        "MPIX_Comm_exchange_sizes",
        "MPIX_File_create_errhandler_extra",
        "MPIX_Op_create_x",
        "MPIX_Request_stage",
        "MPIX_Session_create_errhandler_extra",
        "MPIX_Win_create_errhandler_extra",
    ];
    // include/mpi-ext.h.
    const RECOVERY: [&str; 10] = [
        "MPIX_Comm_ack_failed",
        "MPIX_Comm_agree",
        "MPIX_Comm_failure_ack",
        "MPIX_Comm_failure_get_acked",
        "MPIX_Comm_get_failed",
        "MPIX_Comm_iagree",
        "MPIX_Comm_is_revoked",
        "MPIX_Comm_ishrink",
        "MPIX_Comm_revoke",
        "MPIX_Comm_shrink",
    ];
    let both = |name: &str| [name.to_owned(), format!("P{name}")];
    let wanted: BTreeSet<String> = names
        .iter()
        .map(String::as_str)
        .chain(REMOVED)
        .chain(EXTENSIONS)
        .chain(RECOVERY)
        .flat_map(both)
        .collect();
    let lacking: Vec<_> = wanted.difference(&exported).collect();
    let surplus: Vec<_> = exported.difference(&wanted).collect();
    assert!(lacking.is_empty() && surplus.is_empty(), "lacking {lacking:?}, surplus {surplus:?}");
}

#[test]
fn the_library_has_the_name_that_the_abi_fixes() {
    let dynamic = succeed(Command::new("readelf").arg("-d").arg(library()));
    assert!(dynamic.contains("soname: [libmpi_abi.so.1]"), "{dynamic}");
}

#[test]
fn the_header_pleases_c_and_cplusplus() {
    let directory = scratch("header");
    for (compiler, language, standards) in
        [("cc", "c", ["gnu90", "c99", "c11"]), ("c++", "c++", ["c++11", "c++17", "c++20"])]
    {
        let source = directory.join(format!("include.{language}"));
        std::fs::write(
            &source,
            "#include <mpi_c2f.h>\n#include <mpi.h>\n#include <mpi_c2f.h>\nMPI_Comm comm = MPI_COMM_NULL;\nint (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm) = MPI_Send;\n",
        )
        .unwrap();
        for standard in standards {
            succeed(
                Command::new(compiler)
                    .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"])
                    .arg(format!("-std={standard}"))
                    .args(["-x", language])
                    .arg(&source)
                    .arg(format!("-I{}", root().join("include").display())),
            );
        }
    }
}

#[test]
fn sizes_offsets_and_values() {
    succeed(&mut alone(&compile(&scratch("facts"), "facts", &[])));
}

#[test]
fn bad_handles_of_every_class_are_errors_of_the_class() {
    let printed = succeed(&mut alone(&compile(&scratch("handles"), "handles", &[])));
    assert!(printed.contains("handles: ok"), "{printed}");
}

#[test]
fn a_program_can_replace_a_procedure_and_call_the_original() {
    let printed = succeed(&mut alone(&compile(&scratch("own-send"), "own_send", &[])));
    assert!(printed.contains("sends 1 received 17"), "{printed}");
}

#[test]
fn a_preloaded_tool_sees_the_calls() {
    let directory = scratch("preload");
    let tool = compile(&directory, "counting_tool", &["-shared", "-fPIC"]);
    let program = compile(&directory, "plain", &[]);
    let printed = succeed(alone(&program).env("LD_PRELOAD", tool));
    assert!(printed.contains("tool: 3 sends"), "{printed}");
}

#[test]
fn an_error_ends_the_program_with_one_clear_message() {
    let program = compile(&scratch("fatal"), "fatal", &[]);
    let cases: [(&str, i32, &[&str]); 6] = [
        ("before", 1, &["MPI_Send: called before MPI_Init"]),
        ("after", 1, &["MPI_Comm_size: called after MPI_Finalize"]),
        ("twice", 16, &["MPI_Init: rank 0 on host ", "already initialised", "MPI_ERR_OTHER"]),
        ("tag", 4, &["MPI_Send: rank 0 on host ", "tag is -7; allowed are 0 to 2147483647", "MPI_ERR_TAG"]),
        (
            "port",
            43,
            &["MPI_Comm_accept: rank 0 on host ", "not the name of a port", "MPI_Open_port gives one"],
        ),
        ("abort", 42, &["MPI_Abort: rank 0 on host ", "error code 42"]),
    ];
    for (way, code, wanted) in cases {
        let output = run(alone(&program).arg(way));
        let text = text(&output);
        assert_eq!(output.status.code(), Some(code), "{way}: {text}");
        assert!(text.starts_with("said before\n"), "{way}: output is lost: {text}");
        for words in wanted {
            assert!(text.contains(words), "{way}: '{words}' is not in: {text}");
        }
        assert_eq!(text.matches("parnass: ").count(), 1, "{way}: {text}");
    }
}

#[test]
fn error_handlers_of_the_program() {
    let program = compile(&scratch("handlers"), "fatal", &[]);
    assert_eq!(succeed(alone(&program).arg("user")), "said before\nhandler: world code 6\nreturned 6\n");
    assert_eq!(succeed(alone(&program).arg("return")), "said before\nreturned 61\nreturned 43\n");
}

//! The compiler wrappers: the compiler that is there, with what an MPI program needs.
//!
//! Tools that ask a wrapper for its flags keep only `-I`, `-L`, `-l` and `-Wl,-rpath`, so that nothing else
//! is added.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::prefix::Prefix;

/// A language with its compiler.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// The wrapper's name.
    pub wrapper: &'static str,
    /// Variables that name another compiler; the first that is set counts. `CC` and `CXX` do not: they often
    /// name the wrapper itself.
    pub variables: [&'static str; 2],
    /// The compilers to look for.
    pub compilers: [&'static str; 3],
}

/// C.
pub const C: Language =
    Language { wrapper: "mpicc", variables: ["PARNASS_CC", "MPICC_CC"], compilers: ["cc", "gcc", "clang"] };
/// C++.
pub const CXX: Language = Language {
    wrapper: "mpicxx",
    variables: ["PARNASS_CXX", "MPICXX_CXX"],
    compilers: ["c++", "g++", "clang++"],
};

/// What a call of the wrapper asks for.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    /// Compile or link, with this command.
    Execute(Vec<OsString>),
    /// Print this.
    Print(String),
}

/// Runs the wrapper of `language` with the arguments of this process.
pub fn main(language: Language) -> ExitCode {
    let fail = |message: String| {
        eprintln!("{}: {message}", language.wrapper);
        ExitCode::from(1)
    };
    let prefix = match Prefix::of_this_program() {
        Ok(prefix) => prefix,
        Err(error) => return fail(format!("where it is installed cannot be found out: {error}")),
    };
    let named = language.variables.iter().find_map(std::env::var_os).filter(|name| !name.is_empty());
    let compiler = named.unwrap_or_else(|| first_in_path(&language.compilers));
    match action(language, &prefix, compiler, std::env::args_os().skip(1).collect()) {
        Action::Print(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Action::Execute(command) => {
            let error = Command::new(&command[0]).args(&command[1..]).exec();
            fail(format!(
                "the compiler {} cannot be run: {error}; name another with {}=...",
                command[0].display(),
                language.variables[0]
            ))
        }
    }
}

fn first_in_path(names: &[&str]) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        names.iter().find(|name| std::env::split_paths(&path).any(|place| place.join(name).is_file()));
    (*found.unwrap_or(&names[0])).into()
}

fn action(language: Language, prefix: &Prefix, compiler: OsString, arguments: Vec<OsString>) -> Action {
    // A compiler may be named with arguments of its own, as "ccache gcc".
    let mut compiler: Vec<OsString> = compiler
        .as_bytes()
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect();
    let mut shown = None;
    let mut own = Vec::new();
    for argument in arguments {
        let text = argument.to_string_lossy().into_owned();
        if let Some(what) = asked(&text) {
            shown = Some(what);
        } else if let Some(name) = text.strip_prefix("-cc=").or_else(|| text.strip_prefix("-cxx=")) {
            compiler = vec![name.into()];
        } else {
            own.push(argument);
        }
    }
    let include = flag("-I", prefix.include());
    let library = prefix.library();
    let link = vec![flag("-L", &library), flag("-Wl,-rpath,", &library), OsString::from("-lmpi_abi")];
    let compile = vec![include];
    let shown = match shown {
        Some(Shown::Compile) => return Action::Print(line(&compile)),
        Some(Shown::Link) => return Action::Print(line(&link)),
        Some(Shown::Command) => return Action::Print(line(&compiler)),
        Some(Shown::IncludeDirectory) => return Action::Print(prefix.include().display().to_string()),
        Some(Shown::LibraryDirectory) => return Action::Print(library.display().to_string()),
        Some(Shown::Libraries) => return Action::Print("mpi_abi".into()),
        Some(Shown::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            return Action::Print(format!("{} (Parnass) {version}", language.wrapper));
        }
        Some(Shown::CompileInfo) => return Action::Print(line(&[compiler, compile].concat())),
        Some(Shown::LinkInfo) => return Action::Print(line(&[compiler, link].concat())),
        Some(Shown::All) => true,
        None => false,
    };
    let command = if !shown && !has_input(&own) {
        [compiler, own].concat() // As mpicc --version.
    } else if is_linking(&own) {
        [compiler, compile, own, link].concat()
    } else {
        [compiler, compile, own].concat()
    };
    if shown { Action::Print(line(&command)) } else { Action::Execute(command) }
}

/// A question to the wrapper instead of work for the compiler.
#[derive(Clone, Copy, Debug)]
enum Shown {
    All,
    Compile,
    Link,
    CompileInfo,
    LinkInfo,
    Command,
    IncludeDirectory,
    LibraryDirectory,
    Libraries,
    Version,
}

/// The questions of MPICH's and Open MPI's wrappers, with one dash or two.
fn asked(argument: &str) -> Option<Shown> {
    let name = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))?;
    Some(match name {
        "show" | "showme" => Shown::All,
        "showme:compile" => Shown::Compile,
        "showme:link" => Shown::Link,
        "showme:command" => Shown::Command,
        "showme:incdirs" => Shown::IncludeDirectory,
        "showme:libdirs" => Shown::LibraryDirectory,
        "showme:libs" => Shown::Libraries,
        "showme:version" => Shown::Version,
        "compile-info" | "compile_info" => Shown::CompileInfo,
        "link-info" | "link_info" => Shown::LinkInfo,
        _ => return None,
    })
}

fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut flag = OsString::from(name);
    flag.push(value.as_ref());
    flag
}

fn has_input(arguments: &[OsString]) -> bool {
    let mut names_output = false;
    arguments.iter().any(|argument| {
        let bytes = argument.as_bytes();
        let is_output = std::mem::replace(&mut names_output, bytes == b"-o");
        !is_output && (bytes == b"-" || !bytes.starts_with(b"-"))
    })
}

fn is_linking(arguments: &[OsString]) -> bool {
    const STOPPING: [&str; 6] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];
    !arguments.iter().any(|argument| STOPPING.iter().any(|stopping| *stopping == argument))
}

/// The words as a shell would have to be given them.
fn line(words: &[OsString]) -> String {
    let quoted = words.iter().map(|word| {
        let text = word.to_string_lossy();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%^~".contains(&byte);
        if !text.is_empty() && text.bytes().all(plain) {
            text.into_owned()
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(arguments: &str) -> String {
        match run(arguments) {
            Action::Print(text) => text,
            other => panic!("{other:?}"),
        }
    }

    fn executed(arguments: &str) -> String {
        match run(arguments) {
            Action::Execute(words) => line(&words),
            other => panic!("{other:?}"),
        }
    }

    fn run(arguments: &str) -> Action {
        let arguments = arguments.split_whitespace().map(OsString::from).collect();
        action(C, &Prefix::at("/p"), "gcc".into(), arguments)
    }

    #[test]
    fn each_question_has_its_answer() {
        assert_eq!(printed("-show"), "gcc -I/p/include -L/p/lib -Wl,-rpath,/p/lib -lmpi_abi");
        assert_eq!(printed("--showme -c a.c"), "gcc -I/p/include -c a.c");
        assert_eq!(printed("-showme:compile"), "-I/p/include");
        assert_eq!(printed("--showme:link"), "-L/p/lib -Wl,-rpath,/p/lib -lmpi_abi");
        assert_eq!(printed("-compile-info"), "gcc -I/p/include");
        assert_eq!(printed("-link_info"), "gcc -L/p/lib -Wl,-rpath,/p/lib -lmpi_abi");
        assert_eq!(printed("-showme:libs"), "mpi_abi");
    }

    #[test]
    fn the_library_comes_last_and_only_when_linking() {
        let link = "-L/p/lib -Wl,-rpath,/p/lib -lmpi_abi";
        assert_eq!(executed("a.c -o a"), format!("gcc -I/p/include a.c -o a {link}"));
        assert_eq!(executed("-c a.c"), "gcc -I/p/include -c a.c");
        assert_eq!(executed("-E -"), "gcc -I/p/include -E -");
        assert_eq!(executed("--version"), "gcc --version");
        assert_eq!(executed("-cc=clang -shared x.o"), format!("clang -I/p/include -shared x.o {link}"));
    }

    #[test]
    fn a_compiler_may_have_arguments_and_a_path_spaces() {
        let command = action(C, &Prefix::at("/my p"), "ccache gcc".into(), vec!["-c".into(), "a.c".into()]);
        let Action::Execute(words) = command else { panic!("a command") };
        assert_eq!(line(&words), "ccache gcc '-I/my p/include' -c a.c");
    }
}

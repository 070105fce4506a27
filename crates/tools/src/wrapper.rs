//! The compiler wrappers: the compiler that is there, with what an MPI program needs.
//!
//! Tools that ask a wrapper for its flags keep only `-I`, `-L`, `-l` and `-Wl,-rpath`, so that nothing else
//! is added.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::fortran;
use crate::prefix::Prefix;

/// A language with its compiler.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// The wrapper's name.
    pub wrapper: &'static str,
    /// Variables that name another compiler; the first that is set counts. `CC` and `CXX` do not: they often
    /// name the wrapper itself.
    pub variables: &'static [&'static str],
    /// The compilers to look for.
    pub compilers: &'static [&'static str],
    /// Whether the bindings are made by the compiler itself.
    pub makes_bindings: bool,
}

/// C.
pub const C: Language = Language {
    wrapper: "mpicc",
    variables: &["PARNASS_CC", "MPICC_CC"],
    compilers: &["cc", "gcc", "clang"],
    makes_bindings: false,
};
/// C++.
pub const CXX: Language = Language {
    wrapper: "mpicxx",
    variables: &["PARNASS_CXX", "MPICXX_CXX"],
    compilers: &["c++", "g++", "clang++"],
    makes_bindings: false,
};
/// Fortran. `FC` counts, unless it names a wrapper.
pub const FORTRAN: Language = Language {
    wrapper: "mpifort",
    variables: &["PARNASS_FC", "MPIFORT_FC", "FC"],
    compilers: &["gfortran", "flang", "flang-new", "ifx", "nvfortran"],
    makes_bindings: true,
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
    match action(language, &prefix, compiler(&language), std::env::args_os().skip(1).collect()) {
        Err(message) => fail(message),
        Ok(Action::Print(text)) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Ok(Action::Execute(command)) => {
            let error = Command::new(&command[0]).args(&command[1..]).exec();
            fail(format!(
                "the compiler {} cannot be run: {error}; name another with {}=...",
                command[0].display(),
                language.variables[0]
            ))
        }
    }
}

/// The compiler that the environment names, or the first in the path.
pub(crate) fn compiler(language: &Language) -> OsString {
    let is_wrapper =
        |name: &OsString| Path::new(name).file_name().is_some_and(|name| name.as_bytes().starts_with(b"mpi"));
    let mut named = language.variables.iter().filter_map(std::env::var_os);
    let named = named.find(|name| !name.is_empty() && !is_wrapper(name));
    named.unwrap_or_else(|| first_in_path(language.compilers))
}

/// A compiler may be named with arguments of its own, as "ccache gcc".
pub(crate) fn words(compiler: &OsStr) -> Vec<OsString> {
    compiler
        .as_bytes()
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect()
}

fn first_in_path(names: &[&str]) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        names.iter().find(|name| std::env::split_paths(&path).any(|place| place.join(name).is_file()));
    (*found.unwrap_or(&names[0])).into()
}

fn action(
    language: Language,
    prefix: &Prefix,
    compiler: OsString,
    arguments: Vec<OsString>,
) -> Result<Action, String> {
    let mut compiler = words(&compiler);
    let mut shown = None;
    let mut own = Vec::new();
    for argument in arguments {
        let text = argument.to_string_lossy().into_owned();
        if let Some(what) = asked(&text) {
            shown = Some(what);
        } else if let Some(name) =
            ["-cc=", "-cxx=", "-fc="].iter().find_map(|option| text.strip_prefix(option))
        {
            compiler = vec![name.into()];
        } else {
            own.push(argument);
        }
    }
    let shown = match shown {
        Some(Shown::Command) => return Ok(Action::Print(line(&compiler))),
        Some(Shown::Version) => {
            let version = env!("CARGO_PKG_VERSION");
            return Ok(Action::Print(format!("{} (Parnass) {version}", language.wrapper)));
        }
        shown => shown,
    };
    if shown.is_none() && !has_input(&own) {
        return Ok(Action::Execute([compiler, own].concat())); // As mpicc --version.
    }
    // The folders in which compiler and linker look, and the libraries.
    let (mut options, mut includes, mut folders, mut libraries) = (Vec::new(), vec![], vec![], vec![]);
    if language.makes_bindings {
        fortran::check_options(&own)?;
        let bindings = fortran::Bindings::of(prefix, &fortran::Compiler::ask(compiler.clone())?)?;
        options = bindings.options();
        includes.push(bindings.directory().to_owned());
        folders.push(bindings.directory().to_owned());
        libraries.push(fortran::LIBRARY);
    }
    includes.push(prefix.include());
    libraries.push("mpi_abi");
    let mut compile = options;
    compile.extend(includes.iter().map(|folder| flag("-I", folder)));
    let mut link: Vec<OsString> = folders.iter().map(|folder| flag("-L", folder)).collect();
    link.extend([flag("-L", prefix.library()), flag("-Wl,-rpath,", prefix.library())]);
    link.extend(libraries.iter().map(|library| flag("-l", library)));
    folders.push(prefix.library());
    let listed = |folders: &[PathBuf]| {
        folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(" ")
    };
    let answer = match shown {
        Some(Shown::Compile) => line(&compile),
        Some(Shown::Link) => line(&link),
        Some(Shown::IncludeDirectory) => listed(&includes),
        Some(Shown::LibraryDirectory) => listed(&folders),
        Some(Shown::Libraries) => libraries.join(" "),
        Some(Shown::CompileInfo) => line(&[compiler, compile].concat()),
        Some(Shown::LinkInfo) => line(&[compiler, link].concat()),
        _ => {
            let last = if is_linking(&own) { link } else { Vec::new() };
            let command = [compiler, compile, own, last].concat();
            return Ok(match shown {
                Some(_) => Action::Print(line(&command)),
                None => Action::Execute(command),
            });
        }
    };
    Ok(Action::Print(answer))
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
pub(crate) fn line(words: &[impl AsRef<OsStr>]) -> String {
    let quoted = words.iter().map(|word| {
        let text = word.as_ref().to_string_lossy();
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
        match run(arguments).unwrap() {
            Action::Print(text) => text,
            other => panic!("{other:?}"),
        }
    }

    fn executed(arguments: &str) -> String {
        match run(arguments).unwrap() {
            Action::Execute(words) => line(&words),
            other => panic!("{other:?}"),
        }
    }

    fn run(arguments: &str) -> Result<Action, String> {
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
        let Ok(Action::Execute(words)) = command else { panic!("a command") };
        assert_eq!(line(&words), "ccache gcc '-I/my p/include' -c a.c");
    }
}

//! Which file a program's name means, found before anything is started.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::arguments::{Job, Part};

/// Why a job cannot be started.
#[derive(Debug)]
pub struct Problem {
    pub message: String,
    pub exit_code: u8,
}

/// As a shell says it: there is such a file, but it cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// As a shell says it: there is no such program.
pub const NOT_FOUND: u8 = 127;

/// The absolute path of each part's program.
pub fn resolve(job: &Job) -> Result<Vec<PathBuf>, Problem> {
    job.parts.iter().map(resolve_part).collect()
}

fn resolve_part(part: &Part) -> Result<PathBuf, Problem> {
    let directory = match &part.directory {
        None => PathBuf::from("."),
        Some(directory) if directory.is_dir() => directory.clone(),
        Some(directory) => {
            let what = if directory.exists() { "is not a directory" } else { "does not exist" };
            let message = format!("the working directory {} {what}", directory.display());
            return Err(Problem { message, exit_code: 1 });
        }
    };
    let path = search_path(part);
    let found = find(&part.program, &directory, path.as_deref())?;
    std::path::absolute(&found)
        .map_err(|error| Problem { message: format!("{}: {error}", found.display()), exit_code: NOT_FOUND })
}

/// Where the ranks would search, which `-x PATH=...` may have changed.
fn search_path(part: &Part) -> Option<OsString> {
    let set = part.environment.set.iter().rev().find(|(name, _)| name == "PATH");
    set.map(|(_, value)| value.clone()).or_else(|| std::env::var_os("PATH"))
}

fn find(program: &OsStr, directory: &Path, path: Option<&OsStr>) -> Result<PathBuf, Problem> {
    let shown = program.display();
    if program.as_bytes().contains(&b'/') {
        let file = directory.join(program);
        return check(&file).map(|()| file);
    }
    let mut unusable = None;
    for place in path.into_iter().flat_map(std::env::split_paths) {
        let file = directory.join(place).join(program);
        match check(&file) {
            Ok(()) => return Ok(file),
            Err(problem) if problem.exit_code == NOT_EXECUTABLE => {
                unusable = unusable.or(Some(problem));
            }
            Err(_) => {}
        }
    }
    // A plain name means the working directory too: `mpiexec -n 2 a.out` is what many type.
    let here = directory.join(program);
    match check(&here) {
        Ok(()) => Ok(here),
        Err(problem) if problem.exit_code == NOT_EXECUTABLE => Err(unusable.unwrap_or(problem)),
        Err(_) => Err(unusable.unwrap_or_else(|| Problem {
            message: format!("there is no program '{shown}', neither in PATH nor in the working directory"),
            exit_code: NOT_FOUND,
        })),
    }
}

fn check(file: &Path) -> Result<(), Problem> {
    let shown = file.strip_prefix(".").unwrap_or(file);
    let shown = if file.starts_with("./") { Path::new(".").join(shown) } else { shown.to_owned() };
    let shown = shown.display();
    let problem = |message: String, exit_code| Err(Problem { message, exit_code });
    match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            problem(format!("there is no program {shown}"), NOT_FOUND)
        }
        Err(error) => problem(format!("the program {shown} cannot be used: {error}"), NOT_EXECUTABLE),
        Ok(metadata) if metadata.is_dir() => {
            problem(format!("{shown} is a directory and not a program"), NOT_EXECUTABLE)
        }
        Ok(_) if access(file, Access::EXEC_OK).is_err() => {
            let advice = match file.extension().and_then(OsStr::to_str) {
                Some("py") => format!("start it as: python3 {shown}"),
                Some("c") => format!("compile it: mpicc {shown} -o NAME"),
                Some("cc" | "cpp" | "cxx") => format!("compile it: mpicxx {shown} -o NAME"),
                Some("sh") => format!("start it as: sh {shown}"),
                _ => format!("if it is a program: chmod +x {shown}"),
            };
            problem(format!("{shown} is not executable; {advice}"), NOT_EXECUTABLE)
        }
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(program: &str, directory: &Path) -> u8 {
        find(OsStr::new(program), directory, Some(OsStr::new("/bin:/usr/bin"))).unwrap_err().exit_code
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let found = find(OsStr::new("sh"), Path::new("."), Some(OsStr::new("/nowhere:/bin"))).unwrap();
        assert_eq!(found, Path::new("/bin/sh"));
        assert_eq!(find(OsStr::new("./sh"), Path::new("/bin"), None).unwrap(), Path::new("/bin/./sh"));
        assert_eq!(find(OsStr::new("sh"), Path::new("/bin"), None).unwrap(), Path::new("/bin/sh"));
    }

    #[test]
    fn what_cannot_run_has_the_code_of_a_shell() {
        assert_eq!(code("no-such-program", Path::new(".")), NOT_FOUND);
        assert_eq!(code("./no-such-program", Path::new(".")), NOT_FOUND);
        assert_eq!(code("/etc/passwd", Path::new(".")), NOT_EXECUTABLE);
        assert_eq!(code("/etc", Path::new(".")), NOT_EXECUTABLE);
    }
}

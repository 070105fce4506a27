//! The Fortran bindings, made from their sources by the compiler that is there.
//!
//! Module files can be read only by the compiler that wrote them. So `mpifort` compiles `share/parnass/fortran` when it first
//! meets a compiler, into a folder whose name stands for that compiler, its version and the sources. A folder appears under
//! its name only when it is complete: whoever finds it can use it, and of two that make it at once the second takes the first's.

use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::prefix::Prefix;
use crate::wrapper::{self, words};

/// The library of the bodies, in the folder with the modules.
pub const LIBRARY: &str = "parnass_fortran";
/// Where a folder says why it has no module mpi_f08.
const WITHOUT_F08: &str = "without_mpi_f08.txt";
/// Where a folder keeps the options that programs must be compiled with.
const OPTIONS: &str = "options.txt";
/// What describes arrays to C.
const DESCRIPTORS: &str = "ISO_Fortran_binding.h";

/// A Fortran compiler.
#[derive(Debug)]
pub struct Compiler {
    /// Its command, perhaps with options of its own.
    command: Vec<OsString>,
    /// What it says that it is.
    version: String,
}

impl Compiler {
    /// Asks the compiler who it is.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn ask(command: Vec<OsString>) -> Result<Compiler, String> {
        let Some((program, options)) = command.split_first() else {
            return Err("the name of the Fortran compiler is empty; name one with PARNASS_FC=...".into());
        };
        let output = Command::new(program).args(options).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| {
            format!(
                "the Fortran compiler {} cannot be run: {error}; install one (Debian: apt install gfortran), or name another with \
                 PARNASS_FC=...",
                program.display()
            )
        })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned();
        if !output.status.success() || version.is_empty() {
            return Err(format!(
                "{} --version says nothing ({}); is it a Fortran compiler?",
                program.display(),
                output.status
            ));
        }
        Ok(Compiler { command, version })
    }

    /// The first line of its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn program(&self) -> PathBuf {
        let named = Path::new(&self.command[0]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = match named.components().count() {
            1 => std::env::split_paths(&path).map(|place| place.join(named)).find(|file| file.is_file()),
            _ => None,
        };
        let file = found.unwrap_or_else(|| named.to_owned());
        file.canonicalize().unwrap_or(file)
    }

    fn run(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::null());
        command
    }
}

/// The modules and the library for one compiler.
#[derive(Debug)]
pub struct Bindings {
    directory: PathBuf,
}

impl Bindings {
    /// Those of `compiler`, made now if they are not there.
    ///
    /// # Errors
    /// They cannot be made: a compiler fails, or no folder can be written.
    pub fn of(prefix: &Prefix, compiler: &Compiler) -> Result<Bindings, String> {
        let sources = Sources::of(prefix)?;
        let name = folder_name(compiler, &sources);
        if let Some(directory) = find(prefix, &name) {
            return Ok(Bindings { directory });
        }
        let mut refused = Vec::new();
        for place in places(prefix) {
            let directory = place.join(&name);
            let beside = place.join(format!("{name}.{}", std::process::id()));
            if let Err(error) = std::fs::create_dir_all(&beside) {
                refused.push(format!("{}: {error}", place.display()));
                continue;
            }
            let made = make(compiler, &sources, &beside);
            let renamed = made.and_then(|()| match std::fs::rename(&beside, &directory) {
                // Another mpifort was quicker.
                Err(_) if directory.is_dir() => Ok(()),
                Err(error) => Err(format!("{}: {error}", directory.display())),
                Ok(()) => Ok(()),
            });
            // What is left after a failure, or of a race that was lost.
            let _ = std::fs::remove_dir_all(&beside);
            return renamed.map(|()| Bindings { directory });
        }
        Err(format!(
            "the modules for {} cannot be kept anywhere ({}); make one of these folders writable, or set XDG_CACHE_HOME",
            compiler.version,
            refused.join("; ")
        ))
    }

    /// The options that programs are compiled with, for the sake of mpif.h: without an interface, buffers of several types
    /// are an error to some compilers.
    pub fn options(&self) -> Vec<OsString> {
        words(&std::fs::read(self.directory.join(OPTIONS)).map(OsString::from_vec).unwrap_or_default())
    }

    /// Where the modules, mpif.h and the library are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// What `parnass info` tells.
pub fn support(prefix: &Prefix) -> String {
    let command = wrapper::compiler(&wrapper::FORTRAN);
    let compiler = match Compiler::ask(words(&command)) {
        Ok(compiler) => compiler,
        Err(error) => return format!("none: {error}"),
    };
    let sources = match Sources::of(prefix) {
        Ok(sources) => sources,
        Err(error) => return format!("none: {error}"),
    };
    match find(prefix, &folder_name(&compiler, &sources)) {
        None => format!("mpif.h, mpi, mpi_f08 are made when mpifort is first used with {}", compiler.version),
        Some(directory) => {
            let (modules, reason) = match std::fs::read_to_string(directory.join(WITHOUT_F08)) {
                Ok(reason) => ("mpif.h, mpi", format!("; no mpi_f08: {}", reason.trim())),
                Err(_) => ("mpif.h, mpi, mpi_f08", String::new()),
            };
            format!("{modules} for {} in {}{reason}", compiler.version, directory.display())
        }
    }
}

/// The sources of an installation.
struct Sources {
    directory: PathBuf,
    include: PathBuf,
    hash: u64,
}

impl Sources {
    fn of(prefix: &Prefix) -> Result<Sources, String> {
        let directory = prefix.directory().join("share/parnass/fortran");
        let complaint = |error: std::io::Error| {
            format!("the sources of the Fortran bindings are not installed: {}: {error}", directory.display())
        };
        let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
            .map_err(complaint)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()
            .map_err(complaint)?;
        files.sort();
        files.push(prefix.include().join("mpi.h"));
        let mut hasher = DefaultHasher::new();
        for file in files {
            file.file_name().hash(&mut hasher);
            std::fs::read(&file).map_err(complaint)?.hash(&mut hasher);
        }
        Ok(Sources { include: prefix.include(), hash: hasher.finish(), directory })
    }
}

/// As "gfortran-12.2.0-0123456789abcdef".
fn folder_name(compiler: &Compiler, sources: &Sources) -> String {
    let mut hasher = DefaultHasher::new();
    (compiler.program(), &compiler.command[1..], &compiler.version, sources.hash).hash(&mut hasher);
    let program =
        Path::new(&compiler.command[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number =
        compiler.version.split_whitespace().rfind(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let number = number.map(|number| format!("-{number}")).unwrap_or_default();
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() || "-._".contains(character) { character } else { '_' }
    };
    format!("{program}{number}-{:016x}", hasher.finish()).chars().map(plain).collect()
}

/// The folders in which the bindings may be kept: in the installation, else with the user.
fn places(prefix: &Prefix) -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let mut places = vec![prefix.library().join("fortran")];
    places.extend(cache.map(|cache| cache.join("parnass/fortran")));
    places
}

fn find(prefix: &Prefix, name: &str) -> Option<PathBuf> {
    places(prefix).into_iter().map(|place| place.join(name)).find(|directory| directory.is_dir())
}

/// Compiles everything into `directory`.
fn make(compiler: &Compiler, sources: &Sources, directory: &Path) -> Result<(), String> {
    let source = |name: &str| sources.directory.join(name);
    let work = Work { compiler, directory };

    // 4 bytes is what the bodies count on.
    work.fortran(&source("sizes.f90"), &[], "sizes.o").map_err(|error| {
        format!(
            "the bindings need an INTEGER and a LOGICAL of 4 bytes, and the compiler has others:\n{error}"
        )
    })?;
    let kinds: Vec<OsString> = [("REAL10", "real(10)"), ("REAL16", "real(16)"), ("INTEGER16", "integer(16)")]
        .into_iter()
        .filter(|(_, declared)| {
            work.compiles(&format!("program p\n{declared} :: x\nx = 1\nprint *, x\nend\n"), &[])
        })
        .map(|(name, _)| format!("-DPARNASS_{name}").into())
        .collect();

    let mixed = "program p\ncall q(1)\ncall q(1.5)\nend\n";
    let mismatch: Vec<OsString> = vec!["-fallow-argument-mismatch".into()];
    if !work.compiles(mixed, &[]) && work.compiles(mixed, &mismatch) {
        let text = wrapper::line(&mismatch);
        std::fs::write(directory.join(OPTIONS), text).map_err(|error| format!("{OPTIONS}: {error}"))?;
    }

    // Without descriptors there is no mpi_f08.
    let header = descriptors(compiler);
    let described: Vec<OsString> = match &header {
        Some(path) => {
            let mut define = OsString::from("-DPARNASS_DESCRIPTORS=\"");
            define.push(path);
            define.push("\"");
            vec![define]
        }
        None => Vec::new(),
    };
    let pmpi = [described.clone(), vec!["-DPARNASS_PMPI".into()]].concat();
    std::thread::scope(|scope| {
        let bodies = [
            scope.spawn(|| work.c(sources, "glue.c", &described, "glue.o")),
            scope.spawn(|| work.c(sources, "glue.c", &pmpi, "glue_pmpi.o")),
            scope.spawn(|| work.c(sources, "support.c", &described, "support.o")),
            scope.spawn(|| work.c(sources, "sections.c", &described, "sections.o")),
        ];
        work.fortran(&source("logical.f90"), &[], "logical.o")?;
        work.fortran(&source("mpi_types.F90"), &kinds, "mpi_types.o")?;
        work.fortran(&source("mpi.F90"), &[], "mpi.o")?;
        for body in bodies {
            body.join().map_err(|_| "a compilation was interrupted".to_owned())??;
        }
        Ok::<(), String>(())
    })?;
    let mut objects =
        vec!["glue.o", "glue_pmpi.o", "support.o", "sections.o", "logical.o", "mpi_types.o", "mpi.o"];
    let outcome = match header {
        Some(_) => work.fortran(&source("mpi_f08.F90"), &[], "mpi_f08.o"),
        None => Err(format!("{DESCRIPTORS} of the compiler is not found")),
    };
    match outcome {
        Ok(()) => objects.push("mpi_f08.o"),
        Err(reason) => {
            std::fs::write(directory.join(WITHOUT_F08), reason + "\n").map_err(|error| error.to_string())?;
        }
    }
    let library = format!("lib{LIBRARY}.a");
    let mut archive = Command::new("ar");
    archive.arg("rcs").arg(&library).args(&objects);
    work.finish(archive)?;
    for object in objects.iter().chain(&["sizes.o"]) {
        let _ = std::fs::remove_file(directory.join(object));
    }
    std::fs::copy(source("mpif.h"), directory.join("mpif.h")).map_err(|error| format!("mpif.h: {error}"))?;
    Ok(())
}

struct Work<'a> {
    compiler: &'a Compiler,
    directory: &'a Path,
}

impl Work<'_> {
    fn fortran(&self, source: &Path, options: &[OsString], object: &str) -> Result<(), String> {
        let mut command = self.compiler.run();
        command.args(["-O2", "-fPIC", "-w", "-c"]).args(options).arg(source).args(["-o", object]);
        self.finish(command)
    }

    fn c(&self, sources: &Sources, name: &str, options: &[OsString], object: &str) -> Result<(), String> {
        let command = words(&wrapper::compiler(&wrapper::C));
        let mut command_line = Command::new(&command[0]);
        command_line.args(&command[1..]).args(["-O1", "-fPIC", "-w", "-c", "-I"]).arg(&sources.include);
        command_line.args(options).arg(sources.directory.join(name)).args(["-o", object]);
        self.finish(command_line)
    }

    /// Whether a small program compiles.
    fn compiles(&self, text: &str, options: &[OsString]) -> bool {
        let source = self.directory.join("probe.f90");
        let written = std::fs::write(&source, text).is_ok();
        let compiled = written && self.fortran(&source, options, "probe.o").is_ok();
        for file in ["probe.f90", "probe.o"] {
            let _ = std::fs::remove_file(self.directory.join(file));
        }
        compiled
    }

    fn finish(&self, mut command: Command) -> Result<(), String> {
        let output = command.current_dir(self.directory).stdin(Stdio::null()).output();
        let shown =
            || wrapper::line(&[&[command.get_program()], &*command.get_args().collect::<Vec<_>>()].concat());
        match output {
            Ok(Output { status, .. }) if status.success() => Ok(()),
            Ok(Output { status, stderr, stdout }) => {
                let said = [stdout, stderr].concat();
                Err(format!("{}: {status}\n{}", shown(), String::from_utf8_lossy(&said)))
            }
            Err(error) => Err(format!("{}: {error}", shown())),
        }
    }
}

/// The header that describes this compiler's arrays to C.
fn descriptors(compiler: &Compiler) -> Option<PathBuf> {
    let mut command = compiler.run();
    let asked = command.arg("-print-file-name=include").output().ok();
    let told = asked.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let home = compiler.program().parent().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    let mut folders: Vec<PathBuf> = told.into_iter().filter(|folder| folder.is_absolute()).collect();
    folders.extend(["include/flang", "include", "opt/compiler/include"].map(|folder| home.join(folder)));
    for library in std::fs::read_dir(home.join("lib/clang")).into_iter().flatten().flatten() {
        folders.push(library.path().join("include"));
    }
    folders.into_iter().map(|folder| folder.join(DESCRIPTORS)).find(|file| file.is_file())
}

/// What a call with `arguments` must not have: options that change the types that the bindings were made with.
///
/// # Errors
/// One is among them.
pub fn check_options(arguments: &[OsString]) -> Result<(), String> {
    const REFUSED: [&str; 4] = ["-fdefault-integer-8", "-finteger-4-integer-8", "-i8", "-integer-size=64"];
    match arguments.iter().find(|argument| REFUSED.iter().any(|refused| OsStr::new(refused) == *argument)) {
        Some(option) => Err(format!(
            "{} makes INTEGER 8 bytes long, and the bindings have one of 4 bytes; declare long integers as INTEGER(8) instead",
            option.display()
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiler(command: &str, version: &str) -> Compiler {
        Compiler { command: words(OsStr::new(command)), version: version.to_owned() }
    }

    fn sources(hash: u64) -> Sources {
        Sources { directory: "/s".into(), include: "/i".into(), hash }
    }

    #[test]
    fn a_folder_is_for_one_compiler_one_version_and_one_set_of_sources() {
        let name =
            folder_name(&compiler("/x/gfortran", "GNU Fortran (Debian 12.2.0-14) 12.2.0"), &sources(1));
        assert!(name.starts_with("gfortran-12.2.0-"), "{name}");
        let others = [
            folder_name(&compiler("/x/gfortran", "GNU Fortran (Debian 12.2.0-14) 12.3.0"), &sources(1)),
            folder_name(&compiler("/x/gfortran", "GNU Fortran (Debian 12.2.0-14) 12.2.0"), &sources(2)),
            folder_name(&compiler("/y/gfortran", "GNU Fortran (Debian 12.2.0-14) 12.2.0"), &sources(1)),
            folder_name(&compiler("/x/gfortran -m32", "GNU Fortran (Debian 12.2.0-14) 12.2.0"), &sources(1)),
        ];
        assert!(others.iter().all(|other| *other != name), "{name}: {others:?}");
        let strange = folder_name(&compiler("/x/my fort", "a b/c"), &sources(1));
        assert!(!strange.contains([' ', '/']), "{strange}");
    }

    #[test]
    fn options_that_change_integers_are_refused() {
        let list = |text: &str| words(OsStr::new(text));
        assert!(check_options(&list("-O2 -c a.f90")).is_ok());
        let said = check_options(&list("-O2 -i8 -c a.f90")).unwrap_err();
        assert!(said.contains("-i8") && said.contains("INTEGER(8)"), "{said}");
    }

    #[test]
    fn what_cannot_be_run_is_said() {
        let said = Compiler::ask(words(OsStr::new("/no/such/compiler -x"))).unwrap_err();
        assert!(said.contains("/no/such/compiler") && said.contains("PARNASS_FC"), "{said}");
    }
}

//! Where this installation lies, found from the running program, so that it can be moved.

use std::path::{Path, PathBuf};

/// An installation: `bin`, `lib` and `include` below one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(PathBuf);

impl Prefix {
    /// The installation that the running program belongs to; symbolic links to the program do not matter.
    ///
    /// # Errors
    /// The system cannot tell which file is running.
    pub fn of_this_program() -> std::io::Result<Prefix> {
        let program = std::env::current_exe()?.canonicalize()?;
        let directory = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        Ok(Prefix(directory.to_owned()))
    }

    /// An installation at `directory`.
    pub fn at(directory: impl Into<PathBuf>) -> Prefix {
        Prefix(directory.into())
    }

    /// The directory that holds the others.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Where `mpi.h` lies.
    pub fn include(&self) -> PathBuf {
        self.0.join("include")
    }

    /// Where `libmpi_abi.so.1` lies.
    pub fn library(&self) -> PathBuf {
        self.0.join("lib")
    }

    /// The MPI library itself.
    pub fn library_file(&self) -> PathBuf {
        self.library().join("libmpi_abi.so.1")
    }

    /// The library with MPICH's ABI.
    pub fn mpich_library_file(&self) -> PathBuf {
        self.library().join("libmpi.so.12")
    }
}

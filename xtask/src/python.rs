//! Python environments below `target/`: virtual environments, and packages from the package index.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The version of mpi4py that is built from its source distribution and tested with.
pub const MPI4PY: &str = "4.1.2";

/// A virtual environment.
pub struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// Makes the environment in `folder` unless it is there already.
    pub fn make(folder: &Path) -> anyhow::Result<Self> {
        let environment = Self { folder: folder.to_path_buf() };
        if !environment.python().exists() {
            let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
            let mut command = Command::new(python);
            quiet(command.args(["-m", "venv"]).arg(folder)).context(
                "a virtual environment is needed (Debian: apt install python3-venv python3-pip python3-dev)",
            )?;
        }
        Ok(environment)
    }

    pub fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `pip` with the given subcommand and settings that keep it from asking or chatting.
    pub fn pip(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.python());
        command.args(["-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]).args(arguments);
        command
    }

    /// Builds mpi4py, unmodified, with the installation's own `mpicc`, unless this very header was built against.
    pub fn install_mpi4py(&self, prefix: &Path) -> anyhow::Result<()> {
        let header = std::fs::read(prefix.join("include/mpi.h")).context("mpi.h of the installation")?;
        let mut stamp = format!("mpi4py {MPI4PY} for {}\n", prefix.display()).into_bytes();
        stamp.extend_from_slice(&header);
        let stamp_file = self.folder.join("built-against.h");
        if std::fs::read(&stamp_file).is_ok_and(|found| found == stamp) {
            return Ok(());
        }
        let wanted = format!("mpi4py=={MPI4PY}");
        let mut command =
            self.pip(&["install", "--force-reinstall", "--no-cache-dir", "--no-binary", "mpi4py", &wanted]);
        // -O0 makes the large generated C quick to compile; what is measured through Python is not its speed.
        quiet(command.env("MPICC", prefix.join("bin/mpicc")).env("CFLAGS", "-O0"))
            .context("building mpi4py")?;
        std::fs::write(&stamp_file, stamp)?;
        Ok(())
    }

    /// Installs numpy, with which more of mpi4py's tests run; what is wrong where that does not go.
    pub fn install_numpy(&self) -> anyhow::Result<()> {
        let mut probe = Command::new(self.python());
        if quiet(probe.args(["-c", "import numpy"])).is_ok() {
            return Ok(());
        }
        quiet(&mut self.pip(&["install", "--only-binary", ":all:", "numpy"])).context("installing numpy")
    }

    /// Installs mpi4py's wheel as the package index has it: built elsewhere, for MPICH's ABI and for Open MPI's.
    pub fn install_mpi4py_wheel(&self) -> anyhow::Result<()> {
        let wanted = format!("mpi4py=={MPI4PY}");
        quiet(&mut self.pip(&["install", "--only-binary", "mpi4py", &wanted]))
            .context("installing mpi4py's wheel")
    }

    /// Fetches mpi4py's source distribution into `folder` and returns the unpacked tree, which holds its tests.
    pub fn mpi4py_sources(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let tree = folder.join(format!("mpi4py-{MPI4PY}"));
        if !tree.join("test/main.py").exists() {
            std::fs::create_dir_all(folder)?;
            let wanted = format!("mpi4py=={MPI4PY}");
            let mut command =
                self.pip(&["download", "--no-deps", "--no-binary", "mpi4py", &wanted, "--dest"]);
            quiet(command.arg(folder)).context("fetching mpi4py's source distribution")?;
            let mut command = Command::new("tar");
            command.arg("xzf").arg(folder.join(format!("mpi4py-{MPI4PY}.tar.gz"))).arg("-C").arg(folder);
            quiet(&mut command).context("unpacking mpi4py's source distribution")?;
        }
        Ok(tree)
    }
}

/// Runs a command whose output matters only when it fails.
pub fn quiet(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("{:?}", command.get_program()))?;
    if !output.status.success() {
        let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        bail!("{:?} failed:\n{}", command.get_program(), lines[lines.len().saturating_sub(30)..].join("\n"));
    }
    Ok(())
}

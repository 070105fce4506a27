//! `cargo xtask demo`: from a fresh clone to real MPI programs on four ranks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::python::{Environment, quiet};

/// Builds into `target/prefix`, runs C programs and mpi4py there, and says what to type next.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let start = Instant::now();
    let prefix = root.join("target/prefix");
    let work = root.join("target/demo");
    std::fs::create_dir_all(&work)?;

    step("Building Parnass (the first time takes a few minutes)");
    crate::dist::run(root, &prefix, "release")?;

    step("C programs, compiled with our mpicc");
    let mpiexec = prefix.join("bin/mpiexec");
    for (source, ranks, arguments) in [
        ("tests/programs/hello.c", 4, &[] as &[&str]),
        ("tests/programs/ring.c", 4, &["1000", "64"]),
        ("tests/programs/collectives.c", 4, &[]),
        ("examples/heat.c", 4, &["300", "{work}/heat.png"]),
    ] {
        let program = work.join(Path::new(source).file_stem().unwrap_or_default());
        let mut command = Command::new(prefix.join("bin/mpicc"));
        command.args(["-O2"]).arg(root.join(source)).arg("-o").arg(&program).arg("-lm");
        quiet(&mut command).with_context(|| format!("compiling {source}"))?;
        let mut command = Command::new(&mpiexec);
        command.args(["-n", &ranks.to_string()]).arg(&program);
        command.args(arguments.iter().map(|word| word.replace("{work}", &work.to_string_lossy())));
        shown(root, &mut command)?;
    }

    step("mpi4py from the Python package index, unmodified, compiled by our mpicc");
    let environment = Environment::make(&work.join("python"))?;
    environment.install_mpi4py(&prefix)?;
    let python = environment.python();
    let tasks: [(u32, &[&str]); 4] = [
        (4, &["-m", "mpi4py.bench", "helloworld"]),
        (4, &["-m", "mpi4py.bench", "ringtest", "-l", "100", "-n", "1000"]),
        (2, &["-m", "mpi4py.bench", "pingpong", "-m", "0", "-n", "1000000", "-l", "500"]),
        (4, &["{root}/examples/mandelbrot.py", "{work}/mandelbrot.png"]),
    ];
    for (ranks, arguments) in tasks {
        let mut command = Command::new(&mpiexec);
        command.args(["-n", &ranks.to_string()]).arg(&python);
        for word in arguments {
            command.arg(
                word.replace("{root}", &root.to_string_lossy()).replace("{work}", &work.to_string_lossy()),
            );
        }
        shown(root, &mut command)?;
    }

    let here = |path: PathBuf| relative(root, &path);
    step(&format!("Done in {:.0} s. What to type next", start.elapsed().as_secs_f64()));
    println!("  export PATH=\"$PWD/{}:$PATH\"", here(prefix.join("bin")));
    println!(
        "  mpicc examples/heat.c -O2 -o target/demo/heat -lm && mpiexec -n 4 target/demo/heat 500 heat.png"
    );
    println!("  mpiexec -n 4 {} examples/heat.py 500 heat-python.png", here(python));
    println!("  mpiexec --help          parnass info");
    println!("  pictures: {} and {}", here(work.join("heat.png")), here(work.join("mandelbrot.png")));
    println!("  every test there is: cargo xtask test");
    Ok(())
}

fn step(title: &str) {
    println!("\n== {title}");
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// Runs a command in the sight of the user.
fn shown(root: &Path, command: &mut Command) -> anyhow::Result<()> {
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| relative(root, Path::new(word)))
        .collect();
    println!("\n$ {}", words.join(" "));
    let status = command.stdin(std::process::Stdio::null()).status().with_context(|| words[0].clone())?;
    if !status.success() {
        bail!("{}: {status}", words.join(" "));
    }
    Ok(())
}

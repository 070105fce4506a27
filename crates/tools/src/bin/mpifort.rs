//! `mpifort`: the Fortran compiler for MPI programs.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    parnass_tools::wrapper::main(parnass_tools::wrapper::FORTRAN)
}

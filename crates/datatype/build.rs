//! Compiles the kernels for the floating-point types that Rust has no arithmetic for.

fn main() {
    println!("cargo::rerun-if-changed=kernels/wide.c");
    cc::Build::new()
        .file("kernels/wide.c")
        .opt_level(2)
        .flag_if_supported("-fvisibility=hidden")
        .flag_if_supported("-std=c11")
        .warnings(true)
        .compile("parnass_datatype_kernels");
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.12");
        // The standard's library holds addresses of functions of this one.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}

//! Sets the internal name (soname) of the C library. A program that was linked with this library never loads
//! a version with another interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgleaner_regions.so.0");
}

//! Sets the C library's internal name (soname): programs linked with it find this one, and no later one with another
//! interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgleaner_regions.so.0");
}

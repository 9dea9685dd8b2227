//! The interface for C: regions are numbers, errors are `errno` values, and one set of settings holds for the
//! whole program. include/gleaner_regions.h documents each function.
#![allow(unsafe_code)]

mod configuration;

use crate::quiet::SignalBlock;
use crate::{Region, RegionError, Regions, lock};
use configuration::Configuration;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::os::fd::{BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::{Arc, Mutex};

static PROGRAM: Mutex<Program> = Mutex::new(Program {
    configuration: Configuration::new(),
    regions: None,
    open: BTreeMap::new(),
});

thread_local! {
    static SAID: RefCell<CString> = RefCell::new(CString::default());
}

struct Program {
    configuration: Configuration,
    /// All regions; `None` until the first call that opens a region.
    regions: Option<Arc<Regions>>,
    open: BTreeMap<c_int, Arc<Region>>,
}

/// Failure of a call: `errno` and a text.
struct Failure {
    errno: c_int,
    said: String,
}

impl Failure {
    fn new(errno: c_int, said: &str) -> Self {
        Self {
            errno,
            said: said.to_owned(),
        }
    }
}

impl From<RegionError> for Failure {
    fn from(e: RegionError) -> Self {
        Self::new(e.errno(), &e.to_string())
    }
}

/// Changes a setting. This is possible only before the first region is opened.
///
/// # Safety
/// `name` and `value` are C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gleaner_mset(name: *const c_char, value: *const c_char) -> c_int {
    bounded(|| {
        // SAFETY: promised by the caller.
        let (name, value) = unsafe { (text(name)?, text(value)?) };
        let mut program = lock(&PROGRAM);
        if program.regions.is_some() {
            return Err(Failure::new(
                libc::EBUSY,
                "regions are in use: call gleaner_mend first",
            ));
        }
        let set = program.configuration.set(&name, &value);
        set.map(|()| 0)
            .map_err(|why| Failure::new(libc::EINVAL, &why))
    })
}

/// Opens a region; returns its number.
#[unsafe(no_mangle)]
pub extern "C" fn gleaner_mopen(bytes: u64, fd: c_int, offset: u64) -> c_int {
    bounded(|| {
        let file = duplicate(fd)?;
        let region = Arc::new(regions()?.open(bytes, file, offset)?);
        let mut program = lock(&PROGRAM);
        let is_free = |md: &c_int| !program.open.contains_key(md);
        let md = (0..c_int::MAX).find(is_free);
        let md = md.ok_or_else(|| Failure::new(libc::EMFILE, "too many regions"))?;
        program.open.insert(md, region);
        Ok(md)
    })
}

/// Reads from a region. Returns the number of bytes read, which is less than requested only at the region's
/// end.
///
/// # Safety
/// `into` has room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gleaner_mread(
    md: c_int,
    offset: u64,
    into: *mut c_void,
    bytes: usize,
) -> isize {
    bounded(|| {
        let region = region(md)?;
        if bytes == 0 {
            return Ok(0);
        }
        if into.is_null() {
            return Err(Failure::new(libc::EFAULT, "nowhere to read to"));
        }
        let bytes = bytes.min(isize::MAX as usize);
        // SAFETY: promised by the caller; any bytes are valid u8.
        let into = unsafe { slice::from_raw_parts_mut(into.cast::<u8>(), bytes) };
        Ok(region.read(offset, into)? as isize)
    })
}

/// Writes `bytes` bytes to a region; returns their number.
///
/// # Safety
/// `from` points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gleaner_mwrite(
    md: c_int,
    offset: u64,
    from: *const c_void,
    bytes: usize,
) -> isize {
    bounded(|| {
        let region = region(md)?;
        if bytes == 0 {
            return Ok(0);
        }
        let Ok(count) = isize::try_from(bytes) else {
            return Err(Failure::new(libc::EINVAL, "more than there can be"));
        };
        if from.is_null() {
            return Err(Failure::new(libc::EFAULT, "nothing to write from"));
        }
        // SAFETY: promised by the caller.
        let from = unsafe { slice::from_raw_parts(from.cast::<u8>(), bytes) };
        region.write(offset, from)?;
        Ok(count)
    })
}

/// Returns 1 if the region still has remote memory, 0 if it has only its file.
#[unsafe(no_mangle)]
pub extern "C" fn gleaner_mremote(md: c_int) -> c_int {
    bounded(|| Ok(c_int::from(region(md)?.is_remote())))
}

/// Closes a region. Threads that are reading or writing the region can finish their calls.
#[unsafe(no_mangle)]
pub extern "C" fn gleaner_mclose(md: c_int) -> c_int {
    bounded(|| {
        let closed = lock(&PROGRAM).open.remove(&md);
        closed.map(|_| 0).ok_or_else(no_region)
    })
}

/// Closes all regions and returns their leases. The settings stay in force.
#[unsafe(no_mangle)]
pub extern "C" fn gleaner_mend() -> c_int {
    bounded(|| {
        let mut program = lock(&PROGRAM);
        let open = std::mem::take(&mut program.open);
        let regions = program.regions.take();
        drop(program); // unlocked, since the following waits for servers
        drop(open);
        if let Some(regions) = regions {
            regions.stop_renewing();
        }
        Ok(0)
    })
}

/// Text of the last failure in this thread.
#[unsafe(no_mangle)]
pub extern "C" fn gleaner_merror() -> *const c_char {
    SAID.try_with(|said| said.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

fn regions() -> Result<Arc<Regions>, Failure> {
    let mut program = lock(&PROGRAM);
    if let Some(regions) = &program.regions {
        return Ok(Arc::clone(regions));
    }
    let settings = program.configuration.settings();
    let settings = settings.map_err(|why| Failure::new(libc::EINVAL, &why))?;
    let regions = Arc::new(Regions::new(settings)?);
    program.regions = Some(Arc::clone(&regions));
    Ok(regions)
}

fn region(md: c_int) -> Result<Arc<Region>, Failure> {
    let found = lock(&PROGRAM).open.get(&md).cloned();
    found.ok_or_else(no_region)
}

fn no_region() -> Failure {
    Failure::new(libc::EBADF, "no open region has that number")
}

/// Duplicates the descriptor, since the caller may close its own.
fn duplicate(fd: RawFd) -> Result<File, Failure> {
    let failed = |e: std::io::Error| {
        let errno = e.raw_os_error().unwrap_or(libc::EBADF);
        Failure::new(errno, &format!("descriptor {fd}: {e}"))
    };
    if fd < 0 {
        return Err(failed(std::io::Error::from_raw_os_error(libc::EBADF)));
    }
    // SAFETY: the descriptor is only duplicated, which fails if it is not open.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fd.try_clone_to_owned().map(File::from).map_err(failed)
}

/// # Safety
/// `of` is a C string, or null.
unsafe fn text(of: *const c_char) -> Result<String, Failure> {
    if of.is_null() {
        return Err(Failure::new(libc::EFAULT, "no text"));
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(of) };
    let text = text.to_str().map(str::to_owned);
    text.map_err(|_| Failure::new(libc::EINVAL, "not UTF-8"))
}

/// Calls `done`, and keeps panics and SIGPIPE from the calling program. Returns -1 and sets `errno` on an
/// error.
fn bounded<T: From<i8>>(done: impl FnOnce() -> Result<T, Failure>) -> T {
    let quiet = SignalBlock::new();
    let result = catch_unwind(AssertUnwindSafe(done));
    drop(quiet);
    let Failure { errno, said } = match result {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(libc::EIO, "a fault of the library's"),
    };
    let said = CString::new(said.replace('\0', "?")).unwrap_or_default();
    let _ = SAID.try_with(|last| last.replace(said)); // a thread that is ending needs no text
    // SAFETY: the address is that of this thread's errno.
    unsafe { *libc::__errno_location() = errno };
    T::from(-1_i8)
}

//! EVIOCSMASK (`linux/input.h`, Linux 4.4): selects the events that the kernel queues for the agent.

use rustix::fd::OwnedFd;
use rustix::ioctl::{Setter, ioctl, opcode};

/// Kernel's `struct input_mask`.
#[repr(C)]
struct InputMask {
    kind: u32,
    codes_size_bytes: u32,
    codes: u64,
}

const EVIOCSMASK: rustix::ioctl::Opcode = opcode::write::<InputMask>(b'E', 0x93);

/// Type 0, whose mask selects among the types of events (`drivers/input/evdev.c`).
const EV_SYN: u32 = 0;

/// EV_KEY, EV_REL, EV_ABS and EV_SW (`linux/input-event-codes.h`): events that only a person causes.
///
/// Lights (EV_LED) are excluded: programs and the kernel switch them, some at every disk access, so that the
/// owner would never be away. Sounds, repeat rates, force feedback, and the companions of key events (EV_MSC)
/// are excluded too. Axes are included, although they send many events: a virtual machine's pointer and a
/// dragging finger send nothing else, and only the first event wakes a waiting process.
const TYPES: u64 = 1 << 0x01 | 1 << 0x02 | 1 << 0x03 | 1 << 0x05;

/// Requests only a person's events. If the kernel cannot filter (before Linux 4.4, or a test's file), all
/// events arrive.
#[allow(unsafe_code)]
pub(crate) fn leave_out_lights(device: &OwnedFd) {
    let mask = InputMask {
        kind: EV_SYN,
        codes_size_bytes: size_of::<u64>() as u32,
        codes: std::ptr::from_ref(&TYPES) as u64,
    };
    // SAFETY: the opcode is EVIOCSMASK's and takes this struct, whose `codes` points to eight bytes that the
    // kernel only reads, before the call returns; another kind of file rejects the opcode.
    let _ = unsafe { ioctl(device, Setter::<EVIOCSMASK, InputMask>::new(mask)) };
}

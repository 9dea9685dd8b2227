//! EVIOCSMASK (`linux/input.h`, Linux 4.4): which events the kernel queues for us.

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

/// The mask of type 0 is over the types of events (`drivers/input/evdev.c`).
const EV_SYN: u32 = 0;

/// EV_KEY, EV_REL, EV_ABS and EV_SW (`linux/input-event-codes.h`): the events that only a hand sets off.
///
/// Not lights (EV_LED), which programs and the kernel switch, some at every disk access: the owner would
/// never be away. Nor sounds, repeat rates, force feedback, and the companions of key events (EV_MSC). The
/// axes stay, though they come in floods: a virtual machine's pointer and a dragging finger send nothing but
/// axes, and only the first event wakes a waiting process.
const TYPES: u64 = 1 << 0x01 | 1 << 0x02 | 1 << 0x03 | 1 << 0x05;

/// Asks for the events of a hand alone. If the kernel cannot filter (before 4.4, a fixture), all events come.
#[allow(unsafe_code)]
pub(crate) fn leave_out_lights(device: &OwnedFd) {
    let mask = InputMask {
        kind: EV_SYN,
        codes_size_bytes: size_of::<u64>() as u32,
        codes: std::ptr::from_ref(&TYPES) as u64,
    };
    // SAFETY: the opcode is EVIOCSMASK's and takes this struct, whose `codes` leads to eight bytes that the
    // kernel only reads, before the call returns; another kind of file refuses the opcode.
    let _ = unsafe { ioctl(device, Setter::<EVIOCSMASK, InputMask>::new(mask)) };
}

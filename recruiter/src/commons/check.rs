//! Checks of members' messages. A message that no honest member sends ends the member's link, and changes
//! nothing for other members.

use super::epochs::{Epochs, Moment};
use gleaner_policy::global::age::{self, CLASSES};
use gleaner_schemas::commons::{Hello, MOST_ADDRESS_BYTES, Summary, VERSION};
use gleaner_schemas::lending::{Refusal, RefusalKind};

/// Checks a member's state.
pub(super) fn hello(said: &Hello, now: Moment) -> Result<(), Refusal> {
    if said.version != VERSION {
        return Err(malformed(format!(
            "this recruiter speaks version {VERSION} of the commons' link and the member version {}: install the same release on both",
            said.version
        )));
    }
    let length = said.address.len();
    if length > MOST_ADDRESS_BYTES {
        return Err(malformed(format!(
            "an address of {length} bytes, and the maximum is {MOST_ADDRESS_BYTES}"
        )));
    }
    let port = said.address.rsplit_once(':').map(|(_, port)| port);
    if !port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
        || said.address.chars().any(|c| c.is_control() || c == ' ')
    {
        return Err(malformed(
            "the member's address is not HOST:PORT: other members could not reach it".to_owned(),
        ));
    }
    if Epochs::is_beyond_reason(said.epoch, now) {
        return Err(malformed(format!(
            "epoch {} is days ahead of this recruiter's clock: check the clocks of all recruiters",
            said.epoch
        )));
    }
    Ok(())
}

/// Converts a member's summary.
pub(super) fn summary(said: &Summary) -> Result<age::Summary, Refusal> {
    let classes: [u32; CLASSES] = said.classes.as_slice().try_into().map_err(|_| {
        malformed(format!(
            "a summary of {} classes of ages, and there are {CLASSES}",
            said.classes.len()
        ))
    })?;
    Ok(age::Summary {
        classes,
        free_frames: said.free_frames,
        replaced: said.replaced,
        received: said.received,
        stale: said.stale,
    })
}

pub(super) fn malformed(detail: String) -> Refusal {
    Refusal {
        kind: RefusalKind::Malformed,
        detail,
        retry_in_ms: None,
    }
}

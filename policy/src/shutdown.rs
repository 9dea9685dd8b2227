//! Treatment of a memory server's pages when the owner returns (E. Felten and J. Zahorjan, *Issues in the
//! Implementation of a Remote Memory Paging System*, University of Washington 91-03-09, 1991, section 3.2).
//!
//! [`Shutdown`] has the paper's policies and Gleaner's own; the simulator compares them. [`Revocation`] has
//! those that the clerk carries out while a host reclaims memory gradually. [`CopyPace`] decides when servers
//! send the second copies of [`Shutdown::Replicate`].

use serde::{Deserialize, Serialize};

/// Treatment of the pages at a host that reclaims its memory, while the pages can still be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Revocation {
    /// Drops the pages at that host if there is another copy.
    Drop,
    /// Moves the pages to other servers.
    #[default]
    Migrate,
    /// Moves the pages to this host's disk.
    Disk,
}

/// Other places for a page than the server that becomes dormant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherPlaces {
    /// True if another server has a copy.
    pub has_replica: bool,
    /// True if the client's disk has a copy.
    pub is_on_disk: bool,
    /// True if another server has room for the page.
    pub has_room: bool,
}

impl OtherPlaces {
    /// Returns true if the page can still be read after its server has dropped it.
    #[must_use]
    pub const fn has_copy(self) -> bool {
        self.has_replica || self.is_on_disk
    }
}

impl Revocation {
    /// Returns true if the copy at the leaving host may be dropped now.
    #[must_use]
    pub const fn may_drop(self, other: OtherPlaces) -> bool {
        match self {
            Self::Drop => other.has_copy(),
            Self::Disk => other.is_on_disk,
            // If no server has room, the copy at the leaving server is dropped in spite of the setting, since
            // another copy exists.
            Self::Migrate => other.has_copy() && !other.has_room,
        }
    }

    /// Returns true if pages of a leaving host are copied to this host's disk only, and not to other servers.
    #[must_use]
    pub const fn is_to_disk(self) -> bool {
        match self {
            Self::Disk => true,
            Self::Drop | Self::Migrate => false,
        }
    }
}

/// Policy of a server that becomes dormant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shutdown {
    /// Each page has a second copy at another server, made after it was stored. The server informs the
    /// holders of the second copies, and drops its pages.
    Replicate,
    /// The server sends its pages to room that it reserved at other servers beforehand.
    MigrateReserved,
    /// The server sends its pages to other servers that have room at that time.
    Migrate,
    /// The server sends the pages to the clients' disks.
    ClientDisk,
    /// The server writes the pages to its own disk, and drops each at its next reference.
    ServerDisk,
    /// The server drops all pages at once (Gleaner's owner's return). Another copy replaces them, or they are
    /// lost.
    #[default]
    AtOnce,
}

/// Way in which clients learn of the new place of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forwarding {
    /// The old server sends a message as soon as the page has moved.
    #[default]
    Callback,
    /// The old server answers the client's next reference with the new place.
    NextReference,
}

/// Time at which a server sends second copies of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyPace {
    /// As soon as a copy is needed. Page-ins wait behind all copies that are being sent.
    AtOnce,
    /// Copies follow each other in idle moments: requests come first, so that a page-in waits for one copy at most.
    #[default]
    WhenIdle,
}

/// State of the two hosts between which a second copy would be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyPath {
    /// Page-ins that wait for the sender's CPU.
    pub waiting_page_ins: u32,
    /// True if the sender's link carries a page, or pages wait for the link.
    pub is_sending: bool,
    /// The same of the receiver's link, in the other direction.
    pub is_receiving: bool,
}

impl CopyPace {
    /// Returns true if a copy may be sent now.
    #[must_use]
    pub const fn may_send(self, path: CopyPath) -> bool {
        match self {
            Self::AtOnce => true,
            Self::WhenIdle => path.waiting_page_ins == 0 && !path.is_sending && !path.is_receiving,
        }
    }
}

/// Preparation for a shutdown that each stored page needs, at another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// Nothing is prepared.
    Nothing,
    /// Room for the page is reserved.
    Reservation,
    /// A second copy is made.
    Replica,
}

/// Treatment of one page at the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageMove {
    /// The page is dropped. It is lost unless another copy exists.
    Drop,
    /// Sent to another server.
    ToServer,
    /// Sent to the client's disk.
    ToClientDisk,
    /// Written to the server's own disk.
    ToServerDisk,
}

impl Shutdown {
    /// All policies, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::Replicate,
        Self::MigrateReserved,
        Self::Migrate,
        Self::ClientDisk,
        Self::ServerDisk,
        Self::AtOnce,
    ];

    /// Name in scenario files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replicate => "replicate",
            Self::MigrateReserved => "migrate-reserved",
            Self::Migrate => "migrate",
            Self::ClientDisk => "client-disk",
            Self::ServerDisk => "server-disk",
            Self::AtOnce => "at-once",
        }
    }

    /// Preparation in normal times.
    #[must_use]
    pub const fn preparation(self) -> Preparation {
        match self {
            Self::Replicate => Preparation::Replica,
            Self::MigrateReserved => Preparation::Reservation,
            Self::Migrate | Self::ClientDisk | Self::ServerDisk | Self::AtOnce => {
                Preparation::Nothing
            }
        }
    }

    /// Treatment of a page. A page that has no other copy is moved, even if the preferred place has no room
    /// for it; only [`Self::AtOnce`] loses pages.
    #[must_use]
    pub const fn treatment(self, other: OtherPlaces) -> PageMove {
        match self {
            Self::AtOnce => PageMove::Drop,
            Self::ServerDisk => PageMove::ToServerDisk,
            Self::ClientDisk if other.is_on_disk => PageMove::Drop,
            Self::ClientDisk => PageMove::ToClientDisk,
            Self::Replicate if other.has_copy() => PageMove::Drop,
            Self::Replicate | Self::MigrateReserved | Self::Migrate if other.has_room => {
                PageMove::ToServer
            }
            Self::Replicate | Self::MigrateReserved | Self::Migrate if other.has_copy() => {
                PageMove::Drop
            }
            Self::Replicate | Self::MigrateReserved | Self::Migrate => PageMove::ToClientDisk,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of other places.
    fn all_places() -> impl Iterator<Item = OtherPlaces> {
        (0..8).map(|bits| OtherPlaces {
            has_replica: bits & 1 != 0,
            is_on_disk: bits & 2 != 0,
            has_room: bits & 4 != 0,
        })
    }

    #[test]
    fn only_at_once_loses_pages() {
        for other in all_places() {
            for policy in Shutdown::ALL {
                let is_lost = policy.treatment(other) == PageMove::Drop && !other.has_copy();
                let may_lose = policy == Shutdown::AtOnce && !other.has_copy();
                assert_eq!(is_lost, may_lose, "{policy:?} {other:?}");
            }
            for policy in [Revocation::Drop, Revocation::Migrate, Revocation::Disk] {
                assert!(
                    !policy.may_drop(other) || other.has_copy(),
                    "{policy:?} {other:?}"
                );
            }
        }
    }

    #[test]
    fn pages_are_sent_to_servers_only_where_there_is_room() {
        for other in all_places() {
            for policy in Shutdown::ALL {
                let is_sent = policy.treatment(other) == PageMove::ToServer;
                assert!(!is_sent || other.has_room, "{policy:?} {other:?}");
            }
        }
    }

    #[test]
    fn treatments_are_the_paper_s() {
        let nowhere = OtherPlaces::default();
        let room = OtherPlaces {
            has_room: true,
            ..nowhere
        };
        let on_disk = OtherPlaces {
            is_on_disk: true,
            ..room
        };
        let replica = OtherPlaces {
            has_replica: true,
            ..room
        };
        for (policy, of_room, of_disk, of_replica, of_nowhere) in [
            (
                Shutdown::Replicate,
                PageMove::ToServer,
                PageMove::Drop,
                PageMove::Drop,
                PageMove::ToClientDisk,
            ),
            (
                Shutdown::Migrate,
                PageMove::ToServer,
                PageMove::ToServer,
                PageMove::ToServer,
                PageMove::ToClientDisk,
            ),
            (
                Shutdown::ClientDisk,
                PageMove::ToClientDisk,
                PageMove::Drop,
                PageMove::ToClientDisk,
                PageMove::ToClientDisk,
            ),
            (
                Shutdown::ServerDisk,
                PageMove::ToServerDisk,
                PageMove::ToServerDisk,
                PageMove::ToServerDisk,
                PageMove::ToServerDisk,
            ),
        ] {
            let found = [room, on_disk, replica, nowhere].map(|other| policy.treatment(other));
            assert_eq!(
                found,
                [of_room, of_disk, of_replica, of_nowhere],
                "{policy:?}"
            );
        }
    }

    #[test]
    fn second_copies_wait_for_page_ins_and_links() {
        let idle = CopyPath::default();
        let paths = [
            idle,
            CopyPath {
                waiting_page_ins: 1,
                ..idle
            },
            CopyPath {
                is_sending: true,
                ..idle
            },
            CopyPath {
                is_receiving: true,
                ..idle
            },
        ];
        let may_send = |pace: CopyPace| paths.map(|path| pace.may_send(path));
        assert_eq!(may_send(CopyPace::WhenIdle), [true, false, false, false]);
        assert_eq!(may_send(CopyPace::AtOnce), [true; 4]);
    }

    #[test]
    fn the_clerk_drops_a_copy_as_it_is_configured() {
        let on_disk = OtherPlaces {
            is_on_disk: true,
            has_room: true,
            ..OtherPlaces::default()
        };
        let replica = OtherPlaces {
            has_replica: true,
            ..OtherPlaces::default()
        };
        let may_drop = |policy: Revocation| [on_disk, replica].map(|other| policy.may_drop(other));
        assert_eq!(may_drop(Revocation::Drop), [true, true]);
        assert_eq!(may_drop(Revocation::Disk), [true, false]);
        assert_eq!(may_drop(Revocation::Migrate), [false, true]);
        let is_to_disk =
            [Revocation::Drop, Revocation::Migrate, Revocation::Disk].map(Revocation::is_to_disk);
        assert_eq!(is_to_disk, [false, false, true]);
    }
}

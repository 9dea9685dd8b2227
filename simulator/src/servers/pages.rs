//! Places of all pages, and the room of all servers.

use super::laws::BrokenLaw;
use super::scenario::{FullServers, Scenario};
use gleaner_policy::eviction::Lru;
use gleaner_policy::shutdown::OtherPlaces;

/// Place of a page's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// Memory of a server.
    Server(usize),
    /// Disk of a server that has become dormant.
    ServerDisk(usize),
    /// Disk of the client.
    ClientDisk,
    /// Memory of the client, until the next page-out.
    Client,
    /// The contents are lost.
    Lost,
}

/// A page of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) client: usize,
    pub(super) home: Home,
    /// Server of the second copy, or of the room that is reserved for the page.
    pub(super) second: Option<usize>,
    /// Server that the client asks for the page; `None`: its own disk or memory.
    pub(super) known: Option<usize>,
    /// True if the client's disk has the page.
    pub(super) is_on_disk: bool,
    /// True while a dormant server sends the page to its new place; until then it is not evicted.
    pub(super) is_moving: bool,
    /// True until the present contents are sent to the server of the second copy.
    pub(super) is_copy_due: bool,
}

impl Page {
    /// Returns true if the second copy, in a simulation that makes some, has the present contents.
    pub(super) const fn has_second_copy(&self) -> bool {
        self.second.is_some() && !self.is_copy_due
    }
}

/// Room of a server.
#[derive(Clone, Copy, Debug)]
struct Room {
    pages: u32,
    /// Pages, second copies, reservations, and room for pages on their way.
    used: u32,
}

/// All pages, and their order of use if pages replace each other.
#[derive(Debug)]
pub(super) struct Pages {
    pages: Vec<Page>,
    /// Number of each client's first page; one more than the last page at the end.
    first: Vec<usize>,
    rooms: Vec<Room>,
    full: FullServers,
    /// Pages of each client at servers.
    at_servers: Vec<u32>,
    /// Order of all pages at servers, or an order for each client.
    orders: Vec<Lru>,
    pub(super) lost: u64,
}

impl Pages {
    /// Pages of a checked scenario, all of them in their clients' memory.
    pub(super) fn new(scenario: &Scenario) -> Self {
        let clients = scenario.clients as usize;
        let mut pages = Vec::new();
        let mut first = vec![0];
        for client in 0..clients {
            let page = Page {
                client,
                home: Home::Client,
                second: None,
                known: None,
                is_on_disk: scenario.has_disk_copy,
                is_moving: false,
                is_copy_due: false,
            };
            pages.extend(std::iter::repeat_n(
                page,
                scenario.pages_of(client) as usize,
            ));
            first.push(pages.len());
        }
        let room = Room {
            pages: scenario.server_pages,
            used: 0,
        };
        let orders = match scenario.full {
            FullServers::ClientDisk => Vec::new(),
            FullServers::FixedParts => (0..clients)
                .map(|client| Lru::new(scenario.pages_of(client)))
                .collect(),
            FullServers::SharedLru => vec![Lru::new(pages.len() as u32)],
        };
        Self {
            pages,
            first,
            rooms: vec![room; scenario.servers as usize],
            full: scenario.full,
            at_servers: vec![0; clients],
            orders,
            lost: 0,
        }
    }

    pub(super) fn get(&self, page: usize) -> Page {
        self.pages[page]
    }

    pub(super) fn get_mut(&mut self, page: usize) -> &mut Page {
        &mut self.pages[page]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Page)> {
        self.pages.iter().enumerate()
    }

    /// Numbers of a client's pages.
    pub(super) fn of_client(&self, client: usize) -> std::ops::Range<usize> {
        self.first[client]..self.first[client + 1]
    }

    /// Number of all pages.
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn servers(&self) -> usize {
        self.rooms.len()
    }

    /// Pages, second copies and reservations at a server.
    pub(super) fn used(&self, server: usize) -> u32 {
        self.rooms[server].used
    }

    pub(super) fn set_room(&mut self, server: usize, pages: u32) {
        self.rooms[server].pages = pages;
    }

    /// Number of pages by which a server exceeds its room.
    pub(super) fn excess(&self, server: usize) -> u32 {
        let room = self.rooms[server];
        room.used.saturating_sub(room.pages)
    }

    pub(super) fn free(&self, server: usize) -> u32 {
        let room = self.rooms[server];
        room.pages.saturating_sub(room.used)
    }

    /// Free room of a server for a page of this client.
    pub(super) fn free_for(&self, server: usize, client: usize) -> u32 {
        let free = self.free(server);
        match self.full {
            FullServers::ClientDisk | FullServers::SharedLru => free,
            FullServers::FixedParts => {
                let all: u64 = self.rooms.iter().map(|room| u64::from(room.pages)).sum();
                let part = all / self.at_servers.len().max(1) as u64;
                let rest = part.saturating_sub(u64::from(self.at_servers[client]));
                free.min(u32::try_from(rest).unwrap_or(u32::MAX))
            }
        }
    }

    /// Other server with the most free room.
    pub(super) fn roomiest_but(&self, server: usize) -> Option<usize> {
        let others =
            (0..self.rooms.len()).filter(|other| *other != server && self.free(*other) > 0);
        others.max_by_key(|other| (self.free(*other), std::cmp::Reverse(*other)))
    }

    /// Places for a page besides its server.
    pub(super) fn other_places(
        &self,
        page: usize,
        server: usize,
        has_replica: bool,
    ) -> OtherPlaces {
        OtherPlaces {
            has_replica,
            is_on_disk: self.pages[page].is_on_disk,
            has_room: self.roomiest_but(server).is_some(),
        }
    }

    /// Occupies room of a server, for a page on its way or a second copy.
    pub(super) fn occupy(&mut self, server: usize) {
        self.rooms[server].used += 1;
    }

    pub(super) fn release(&mut self, server: usize) {
        let room = &mut self.rooms[server];
        room.used = room.used.saturating_sub(1);
    }

    /// Gives the page a server's room that was occupied for it.
    pub(super) fn enter(&mut self, page: usize, server: usize) {
        self.leave(page, Home::Server(server));
        self.at_servers[self.pages[page].client] += 1;
        self.touch(page);
    }

    /// Sets the page's place. Its room at the former server is free; the second copy stays.
    pub(super) fn leave(&mut self, page: usize, home: Home) {
        if let Home::Server(server) = self.pages[page].home {
            self.release(server);
            let client = self.pages[page].client;
            self.at_servers[client] = self.at_servers[client].saturating_sub(1);
            let (order, number) = self.place_in_order(page);
            if let Some(order) = self.orders.get_mut(order) {
                order.remove(number);
            }
        }
        self.pages[page].home = home;
        self.lost += u64::from(home == Home::Lost);
    }

    /// Frees the room of the second copy, or the reservation.
    pub(super) fn drop_second(&mut self, page: usize) {
        if let Some(second) = self.pages[page].second.take() {
            self.release(second);
            self.pages[page].is_copy_due = false;
        }
    }

    /// The client learns the present place of the page.
    pub(super) fn learn(&mut self, page: usize) {
        let page = &mut self.pages[page];
        page.known = match page.home {
            Home::Server(server) | Home::ServerDisk(server) => Some(server),
            Home::ClientDisk | Home::Client | Home::Lost => None,
        };
    }

    /// Marks the page as the most recently used one.
    pub(super) fn touch(&mut self, page: usize) {
        let (order, number) = self.place_in_order(page);
        let is_at_server = matches!(self.pages[page].home, Home::Server(_));
        if let Some(order) = self.orders.get_mut(order)
            && is_at_server
        {
            order.touch(number);
        }
    }

    /// Drops the page that must leave for a page of this client; false if none may leave. Its client's disk
    /// has it.
    pub(super) fn evict_for(&mut self, client: usize) -> bool {
        let (order, first) = match self.full {
            FullServers::ClientDisk => return false,
            FullServers::FixedParts => (client, self.first[client]),
            FullServers::SharedLru => (0, 0),
        };
        let may_leave = |number: &u32| !self.pages[first + *number as usize].is_moving;
        let order = self.orders.get(order);
        let coldest = order.and_then(|order| order.coldest().find(may_leave));
        let Some(coldest) = coldest else {
            return false;
        };
        let page = first + coldest as usize;
        self.leave(page, Home::ClientDisk);
        self.drop_second(page);
        if self.full == FullServers::FixedParts {
            // The client itself has chosen the page.
            self.learn(page);
        }
        true
    }

    fn place_in_order(&self, page: usize) -> (usize, u32) {
        match self.full {
            FullServers::ClientDisk | FullServers::SharedLru => (0, page as u32),
            FullServers::FixedParts => {
                let client = self.pages[page].client;
                (client, (page - self.first[client]) as u32)
            }
        }
    }

    /// Checks counts and room. Both hold when no page is on its way.
    pub(super) fn check(&self) -> Result<(), BrokenLaw> {
        let mut named = vec![0_u32; self.rooms.len()];
        for page in &self.pages {
            if let Home::Server(server) = page.home {
                named[server] += 1;
            }
            if let Some(second) = page.second {
                named[second] += 1;
            }
        }
        for (server, (room, named)) in self.rooms.iter().zip(named).enumerate() {
            if room.used != named {
                return Err(BrokenLaw::Count {
                    server,
                    counted: room.used,
                    named,
                });
            }
            self.check_room(server)?;
        }
        Ok(())
    }

    /// Checks that a server's pages fit.
    pub(super) fn check_room(&self, server: usize) -> Result<(), BrokenLaw> {
        let room = self.rooms[server];
        if room.used <= room.pages {
            return Ok(());
        }
        Err(BrokenLaw::Room {
            server,
            pages: room.used,
            room: room.pages,
        })
    }
}

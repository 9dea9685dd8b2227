/* Regions of remote memory, each backed by a part of an open file (docs/regions.md).
 *
 * Any thread may call any of these at any time. Those that return a number return -1 where something went wrong, and set
 * errno. The file always has everything: what servers do can cost time, and never a byte. */
#ifndef GLEANER_REGIONS_H
#define GLEANER_REGIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets one setting of this program, before the first region is opened (EBUSY afterwards); what is not set is taken from the
 * environment, GLEANER_REGIONS_ and the name in capitals. Names:
 *   recruiters     URLs, by commas: https://HOST:PORT, or http:// on this machine
 *   certificate, key, authority   files in PEM form, all three or none
 *   client         whose the leases are, by a recruiter of this machine's
 *   servers        memory servers of this machine, by commas: nbd://127.0.0.1:10809, nbd+unix:///?socket=PATH
 *   when_gone      file (usual): regions whose memory is gone go on from their files; error: ESTALE from then on
 *   refraction_ms  after a failure, nobody is asked for so long (60000)
 *   patience_ms    a server that is silent for longer has failed (3000) */
int gleaner_mset(const char *name, const char *value);

/* Opens a region of so many bytes of the file, from offset on: its number, 0 or more. The descriptor is duplicated, so that it
 * may be closed. It must be open for reading, and for writing where the region is written; not for appending.
 * ENOMEM: nobody lends as much now, said at once during the refraction period. EINVAL: settings, file, length or offset. */
int gleaner_mopen(uint64_t bytes, int fd, uint64_t offset);

/* Reads up to so many bytes: how many; fewer at the region's end alone. What the file does not reach to reads as zeroes. */
ssize_t gleaner_mread(int md, uint64_t offset, void *into, size_t bytes);

/* Writes all of it, to the file first. ENOSPC: beyond the region's end, and nothing was written. */
ssize_t gleaner_mwrite(int md, uint64_t offset, const void *from, size_t bytes);

/* 1: the region has remote memory; 0: it is its file alone. */
int gleaner_mremote(int md);

/* Closes a region. */
int gleaner_mclose(int md);

/* Closes all regions and gives all leases back, which else run out within 30 s of the program's end. */
int gleaner_mend(void);

/* What went wrong last in this thread, for people: until the next call of one of these. Never null. */
const char *gleaner_merror(void);

#ifdef __cplusplus
}
#endif

#endif

// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package file keeps pages in a folder of this machine. It is the default
// storage: nothing to install, no process to run.
//
// Pages of any size are appended to segment files, frame after frame, and an
// index in memory knows where each page lies. So a write of many small pages is
// one write call, a large page is written once and at the speed of the disk, a
// read is one read call, and asking whether a page exists touches no disk. The
// size cap is kept by dropping the oldest segment as a whole; pages in it that
// were used since they were written move to the newest one, as long as they are
// not more than half a segment.
//
// In the folder there is one subfolder for each fingerprint, named by its id:
//
//	DIR/0f3a.../fingerprint.json   what the id stands for; delete the subfolder to drop it
//	DIR/0f3a.../lock               held while a process has it open
//	DIR/0f3a.../00000007.seg       frames (storage.Frame), one after another
//	DIR/0f3a.../00000007.idx       where the frames of a full segment lie, to open quickly
//
// A process may be killed at any moment: the torn end of the last segment is cut
// off at the next opening, and everything before it is found again. Writes are
// not flushed to the platter; after a power cut the checksums tell which pages
// came through. On a full disk one segment is given up and the write tried
// again; if that does not help, writes fail and reads go on. A folder that
// cannot be written is opened for reading. A segment that cannot be read when the
// folder is opened is counted, logged and left; its pages are misses until an
// opening can read it.
//
// Memory: about 60 bytes for each page held.
package file

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_process.h - processes, by numbers, and their files.
 *
 * A number is a PID, and files are opened in /proc. Processes that number each
 * other otherwise, as on nodes that are containers of one machine, have a
 * directory in common (FI_CXIEMU_DIR). A process then has a number that no
 * other one of the directory has, by a lock on the byte of that number in the
 * file "processes". The kernel drops the lock when the process ends, however
 * that happens. Its files have names there: the process's number and the file's
 * descriptor.
 */
#ifndef CXIEMU_PROCESS_H_
#define CXIEMU_PROCESS_H_

#include <stddef.h>
#include <stdint.h>


/** This process's number. 0, logged: it gets none in the directory. Any
 *  thread. */
uint32_t cxiemu_process_self(void);

/** Whether a process has ended. Any thread. */
int cxiemu_process_is_gone(uint32_t number);

/** Whether the kernel knows a process by its number. */
int cxiemu_process_is_pid(void);

/** Make a file of @a length bytes in the directory, of mode 0600 and not
 *  inherited by exec: its descriptor, or -FI_E*. Any thread. */
int cxiemu_process_create_file(size_t length);

/** Open a process's file in the directory: a descriptor, or -1 and errno. */
int cxiemu_process_open_file(uint32_t number, uint32_t fd);

/** This process's file has no name any more, if it had one. */
void cxiemu_process_remove_file(int fd);

/** Before a fork, and behind it in both processes: a child has no number
 *  yet. */
void cxiemu_process_fork_begin(void);
void cxiemu_process_fork_end(int is_child);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* st_info.h - the parts of what ucx_st_info tells. */
#ifndef ST_INFO_H_
#define ST_INFO_H_

/* Prints the devices of the transport cxi_trig. Returns how many there are. */
unsigned info_devices(void);

/* Prints the lanes of the library. Returns how many a worker has. */
unsigned info_lanes(void);

/* Prints on one line which lanes a worker has. Returns how many. */
unsigned info_lanes_line(void);

/* Prints the types of streams. Returns of how many there can be streams. */
unsigned info_streams(void);

/* Prints what waits in a running process. Returns 0 after printing why that
 * cannot be had. */
int info_process(int pid);

/* Prints the settings of the project's libraries, with what they mean if
 * 'is_full'. */
void info_settings(int is_full);

#endif

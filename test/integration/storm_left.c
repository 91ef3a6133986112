/* SPDX-License-Identifier: BSD-3-Clause */
/* storm_left.c - what killed processes have left in the file system. */
#include "storm_left.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* Ours begin so; files of others may have such a word somewhere. */
static int begins_with(const char *name, const char *const *parts)
{
    for (; *parts != NULL; ++parts) {
        if (strncmp(name, *parts, strlen(*parts)) == 0) {
            return 1;
        }
    }
    return 0;
}

static int left_in(const char *path, const char *const *parts)
{
    DIR *dir  = opendir(path);
    int found = 0;
    struct dirent *entry;

    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        if (begins_with(entry->d_name, parts)) {
            printf("left behind: %s/%s\n", path, entry->d_name);
            found = 1;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return found;
}

int storm_left_behind(const char *const *parts)
{
    return left_in("/dev/shm", parts) | left_in("/tmp", parts);
}

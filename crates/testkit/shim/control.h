/* What the processes under test and the test share: switches, counters and the dirty blocks. */
#ifndef FAULTFS_CONTROL_H
#define FAULTFS_CONTROL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define BLOCK 4096
#define WORDS 8192 /* of 64 blocks each: files up to 2 GiB; the last bit stands for the rest */
#define FILES 64

enum { FAIL_NONE = 0, FAIL_NEXT = 1, FAIL_ALL = 2 };

/* The blocks of one file written since its last sync. */
struct marks {
    uint64_t dev, ino;
    uint64_t words[WORDS];
};

/* The first part is known to src/faultfs.rs by its offsets. */
struct control {
    uint32_t drop_syncs, stall_syncs, fail_syncs, disk_full;
    int64_t budget;      /* bytes that may still be written to the full disk */
    char only[64];       /* sync faults are for files whose names end so; empty: all */
    uint64_t syncs, failed_syncs, syncs_after_failure, stalls, refused_writes;
    uint64_t failed_dev, failed_ino;

    uint32_t ready;      /* the mutex is initialised */
    uint32_t overflow;   /* more than FILES dirty files at once: syncs copy all of a file */
    pthread_mutex_t mutex;
    struct marks files[FILES];
};

_Static_assert(offsetof(struct control, budget) == 16, "src/faultfs.rs knows this layout");
_Static_assert(offsetof(struct control, only) == 24, "src/faultfs.rs knows this layout");
_Static_assert(offsetof(struct control, syncs) == 88, "src/faultfs.rs knows this layout");
_Static_assert(offsetof(struct control, failed_dev) == 128, "src/faultfs.rs knows this layout");
_Static_assert(sizeof(struct control) <= 8 << 20, "src/faultfs.rs makes the file this long");

static struct control *control; /* NULL: no faults wanted here */

/* All below is called with the mutex held. */
static struct marks *find_marks(const struct stat *stat, int add) {
    struct marks *free_ = NULL;
    for (int i = 0; i < FILES; i++) {
        struct marks *file = &control->files[i];
        if (file->ino == stat->st_ino && file->dev == stat->st_dev) return file;
        if (!free_ && !file->ino) free_ = file;
    }
    if (!add) return NULL;
    if (!free_) {
        control->overflow = 1;
        return NULL;
    }
    free_->dev = stat->st_dev;
    free_->ino = stat->st_ino;
    return free_;
}

static void mark(const struct stat *stat, off_t from, off_t length) {
    struct marks *file = length > 0 ? find_marks(stat, 1) : NULL;
    if (!file) return;
    uint64_t last = (from + length - 1) / BLOCK, top = WORDS * 64 - 1;
    for (uint64_t block = from / BLOCK; block <= last && block <= top; block++)
        file->words[block / 64] |= 1ULL << block % 64;
    if (last > top) file->words[WORDS - 1] |= 1ULL << 63;
}

#endif

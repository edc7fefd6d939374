/*
 * File faults below one directory, for a process started with LD_PRELOAD.
 *
 *   FAULTFS_DIR      the directory; files elsewhere are left alone
 *   FAULTFS_SHADOW   what a disk would hold of it after a power cut
 *   FAULTFS_CONTROL  a file, mapped by every process, with switches and counters (struct control)
 *
 * A kill cannot show a missing sync, since the page cache survives it. So every write marks its
 * blocks in the control file, and a sync copies the marked blocks and the length to the shadow.
 * The marks are shared and outlive the process: a sync after a restart also covers what the dead
 * process wrote, as on a real disk.
 *
 * Durable at once: creating, renaming and removing files. Not seen: writes through a mapping
 * (SQLite maps only its -shm file, which no crash needs), copy_file_range, O_SYNC.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "control.h"

_Static_assert(sizeof(off_t) == 8, "faultfs needs 64-bit file offsets");

/* The calls that are ours, and what they were. */
#define CALLS(X)                                                  \
    X(int, open, const char *, int, ...)                          \
    X(int, openat, int, const char *, int, ...)                   \
    X(ssize_t, write, int, const void *, size_t)                  \
    X(ssize_t, writev, int, const struct iovec *, int)            \
    X(ssize_t, pwrite, int, const void *, size_t, off_t)          \
    X(ssize_t, pwritev, int, const struct iovec *, int, off_t)    \
    X(int, ftruncate, int, off_t)                                 \
    X(int, posix_fallocate, int, off_t, off_t)                    \
    X(int, fsync, int)                                            \
    X(int, fdatasync, int)                                        \
    X(int, unlink, const char *)                                  \
    X(int, unlinkat, int, const char *, int)                      \
    X(int, rename, const char *, const char *)

#define DECLARE(result, name, ...) static result (*real_##name)(__VA_ARGS__);
#define FIND(result, name, ...) if (!(real_##name = dlsym(RTLD_NEXT, #name))) die(#name);
CALLS(DECLARE)

static const char *dir, *shadow;
static size_t dir_length;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void die(const char *what) {
    fprintf(stderr, "faultfs: %s: %s\n", what, strerror(errno));
    abort(); /* a test without its faults would pass for the wrong reason */
}

/* Under a file lock, which a killed process gives back. */
static void init_mutex(int fd) {
    if (flock(fd, LOCK_EX) != 0) die("lock the control file");
    if (!control->ready) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        if (pthread_mutex_init(&control->mutex, &attributes) != 0) die("make a mutex");
        control->ready = 1;
    }
    flock(fd, LOCK_UN);
}

static void init(void) {
    CALLS(FIND)
    const char *path = getenv("FAULTFS_CONTROL");
    dir = getenv("FAULTFS_DIR");
    shadow = getenv("FAULTFS_SHADOW");
    if (!path || !dir || !shadow) return;
    /* The environment may be changed later. */
    dir = strdup(dir);
    shadow = strdup(shadow);
    dir_length = strlen(dir);
    int fd = real_open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) die(path);
    void *map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) die("map the control file");
    control = map;
    init_mutex(fd);
    close(fd);
}

__attribute__((constructor)) static void start(void) { pthread_once(&once, init); }

static int on(void) {
    pthread_once(&once, init);
    return control != NULL;
}

static void lock(void) {
    /* The marks of a process that died here are whole: it set them before it wrote. */
    if (pthread_mutex_lock(&control->mutex) == EOWNERDEAD)
        pthread_mutex_consistent(&control->mutex);
}

static void unlock(void) { pthread_mutex_unlock(&control->mutex); }

static uint32_t flag(const uint32_t *switch_) { return __atomic_load_n(switch_, __ATOMIC_ACQUIRE); }

static void count(uint64_t *counter) { __atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL); }

/* ---- Which file is it? -------------------------------------------------------------------- */

static int inside(const char *path) {
    return strncmp(path, dir, dir_length) == 0 && path[dir_length] == '/';
}

static int ends_with(const char *path, const char *end) {
    size_t length = strlen(path), end_length = strlen(end);
    return length >= end_length && strcmp(path + length - end_length, end) == 0;
}

/* Asked anew at each call: no table of descriptors can go wrong over dup, fork and close. */
static int watched(int fd, struct stat *stat, char path[PATH_MAX]) {
    int saved = errno;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = -1;
    if (on() && fstat(fd, stat) == 0 && S_ISREG(stat->st_mode) && stat->st_nlink > 0)
        length = readlink(link, path, PATH_MAX - 1);
    errno = saved;
    if (length < 0) return 0;
    path[length] = 0;
    return inside(path);
}

/* The path that an unlink or rename is about, links in it resolved but for the last part. */
static int resolve(int at, const char *given, char path[PATH_MAX]) {
    int saved = errno;
    char full[PATH_MAX], folder[PATH_MAX], link[64], *base;
    ssize_t length = 0;
    if (!on()) return 0;
    if (given[0] != '/' && at != AT_FDCWD) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        length = readlink(link, full, sizeof full - 1);
        if (length < 0) return 0;
        full[length++] = '/';
    }
    if (snprintf(full + length, sizeof full - length, "%s", given) >= (int)sizeof full - length)
        return 0;
    char copy[PATH_MAX];
    strcpy(copy, full);
    base = basename(full);
    int found = realpath(dirname(copy), folder) != NULL
        && snprintf(path, PATH_MAX, "%s/%s", folder, base) < PATH_MAX;
    errno = saved;
    return found && inside(path);
}

/* ---- The shadow --------------------------------------------------------------------------- */

/* No crash needs SQLite's index of its log; it is mapped, and rebuilt at the next start. */
static int has_shadow(const char *path) { return !ends_with(path, "-shm"); }

static void shadow_path(const char *path, char result[PATH_MAX]) {
    if (snprintf(result, PATH_MAX, "%s%s", shadow, path + dir_length) >= PATH_MAX)
        die("a path is too long");
}

static int shadow_open(const char *path, mode_t mode) {
    char target[PATH_MAX];
    shadow_path(path, target);
    int fd = real_open(target, O_WRONLY | O_CREAT | O_CLOEXEC, mode & 0777);
    if (fd >= 0 || errno != ENOENT) return fd;
    for (char *slash = target + strlen(shadow) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(target, 0777);
        *slash = '/';
    }
    return real_open(target, O_WRONLY | O_CREAT | O_CLOEXEC, mode & 0777);
}

static void shadow_create(const char *path, mode_t mode) {
    if (!has_shadow(path)) return;
    int fd = shadow_open(path, mode);
    if (fd < 0) die("create a shadow file");
    close(fd);
}

static void shadow_unlink(const char *path) {
    char target[PATH_MAX];
    shadow_path(path, target);
    real_unlink(target);
}

/* A file that is gone needs no marks, and its place in the table is wanted. */
static void forget(const struct stat *stat) {
    lock();
    struct marks *file = find_marks(stat, 0);
    if (file) memset(file, 0, sizeof *file);
    unlock();
}

static void copy(int from, int to, off_t start, off_t end) {
    static char buffer[16 * BLOCK]; /* under the lock, as all callers are */
    while (start < end) {
        size_t length = end - start < (off_t)sizeof buffer ? (size_t)(end - start) : sizeof buffer;
        ssize_t got = pread(from, buffer, length, start);
        if (got < 0) die("read for the shadow");
        if (got == 0) return; /* truncated by another thread, whose sync is to come */
        if (real_pwrite(to, buffer, got, start) != got) die("write the shadow");
        start += got;
    }
}

/* What was written to the file since its last sync is on disk now. Call with the lock. */
static void settle(int fd, const char *path) {
    struct stat stat;
    if (fstat(fd, &stat) != 0) die("look at a synced file");
    struct marks *file = find_marks(&stat, 0);
    int to = shadow_open(path, stat.st_mode), from = fd;
    if (to < 0) die("open a shadow file");
    /* Not done for descriptors that can be read: closing another one of the same file would give
     * up this process's POSIX locks on it, SQLite's among them. */
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) from = real_open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0) die("read a synced file");
    if (control->overflow) copy(from, to, 0, stat.st_size);
    for (int i = 0; file && i < WORDS; i++) {
        for (uint64_t word = file->words[i]; word; word &= word - 1) {
            off_t start = ((off_t)i * 64 + __builtin_ctzll(word)) * BLOCK;
            int rest = i == WORDS - 1 && word == 1ULL << 63;
            off_t end = rest || start + BLOCK > stat.st_size ? stat.st_size : start + BLOCK;
            copy(from, to, start, end);
        }
    }
    if (real_ftruncate(to, stat.st_size) != 0) die("cut the shadow to length");
    close(to);
    if (from != fd) close(from);
    /* Last, so that a process killed above leaves its work to the next sync. */
    if (file) memset(file, 0, sizeof *file);
}

/* ---- Syncs -------------------------------------------------------------------------------- */

static int fails(const struct stat *stat) {
    uint32_t next = FAIL_NEXT;
    if (flag(&control->fail_syncs) != FAIL_ALL
        && !__atomic_compare_exchange_n(
            &control->fail_syncs, &next, FAIL_NONE, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return 0;
    /* As Linux does: the pages count as clean from now on. They are still read from the cache,
     * but a second sync has nothing to write and succeeds. */
    lock();
    struct marks *file = find_marks(stat, 0);
    if (file) memset(file, 0, sizeof *file);
    control->failed_dev = stat->st_dev;
    control->failed_ino = stat->st_ino;
    unlock();
    count(&control->failed_syncs);
    return 1;
}

static int sync_(int fd, int (*real)(int)) {
    struct stat stat;
    char path[PATH_MAX];
    if (!watched(fd, &stat, path)) return real(fd);
    count(&control->syncs);
    if (ends_with(path, control->only)) {
        if (flag(&control->stall_syncs)) count(&control->stalls);
        while (flag(&control->stall_syncs)) nanosleep(&(struct timespec){0, 1000000}, NULL);
        if (control->failed_ino == stat.st_ino && control->failed_dev == stat.st_dev)
            count(&control->syncs_after_failure);
        if (fails(&stat)) {
            errno = EIO;
            return -1;
        }
        if (flag(&control->drop_syncs)) return 0;
    }
    int result = real(fd);
    if (result == 0 && has_shadow(path)) {
        lock();
        settle(fd, path);
        unlock();
    }
    return result;
}

int fsync(int fd) { return on(), sync_(fd, real_fsync); }
int fdatasync(int fd) { return on(), sync_(fd, real_fdatasync); }

/* ---- Writes ------------------------------------------------------------------------------- */

/* How much of a write the disk has room for; 0 with ENOSPC when none. Call with the lock. */
static size_t room(size_t wanted) {
    if (!flag(&control->disk_full) || wanted == 0) return wanted;
    size_t left = control->budget > 0 ? (size_t)control->budget : 0;
    size_t length = wanted < left ? wanted : left;
    control->budget -= length;
    if (length == 0) {
        count(&control->refused_writes);
        errno = ENOSPC;
    }
    return length;
}

static off_t position(int fd) {
    struct stat stat;
    if (!(fcntl(fd, F_GETFL) & O_APPEND)) return lseek(fd, 0, SEEK_CUR);
    return fstat(fd, &stat) == 0 ? stat.st_size : 0;
}

/* `at` is the place to write to, or -1 for the descriptor's own. */
static ssize_t write_at(int fd, const void *bytes, size_t length, off_t at) {
    struct stat stat;
    char path[PATH_MAX];
    if (!watched(fd, &stat, path))
        return at < 0 ? real_write(fd, bytes, length) : real_pwrite(fd, bytes, length, at);
    ssize_t result = -1;
    lock();
    size_t fits = room(length);
    if (fits > 0 || length == 0) {
        if (has_shadow(path)) mark(&stat, at < 0 ? position(fd) : at, fits);
        result = at < 0 ? real_write(fd, bytes, fits) : real_pwrite(fd, bytes, fits, at);
    }
    int saved = errno;
    unlock();
    errno = saved;
    return result;
}

static ssize_t writev_at(int fd, const struct iovec *parts, int parts_length, off_t at) {
    struct stat stat;
    char path[PATH_MAX];
    if (!watched(fd, &stat, path))
        return at < 0 ? real_writev(fd, parts, parts_length)
                      : real_pwritev(fd, parts, parts_length, at);
    /* One part is a short write, and callers have to go on after one of those anyway. */
    for (int i = 0; i < parts_length; i++)
        if (parts[i].iov_len > 0) return write_at(fd, parts[i].iov_base, parts[i].iov_len, at);
    return 0;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    return on(), write_at(fd, bytes, length, -1);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
    on();
    if (at < 0) return real_pwrite(fd, bytes, length, at);
    return write_at(fd, bytes, length, at);
}

ssize_t writev(int fd, const struct iovec *parts, int parts_length) {
    return on(), writev_at(fd, parts, parts_length, -1);
}

ssize_t pwritev(int fd, const struct iovec *parts, int parts_length, off_t at) {
    on();
    if (at < 0) return real_pwritev(fd, parts, parts_length, at);
    return writev_at(fd, parts, parts_length, at);
}

int ftruncate(int fd, off_t length) {
    struct stat stat;
    char path[PATH_MAX];
    on();
    if (!watched(fd, &stat, path)) return real_ftruncate(fd, length);
    int result = -1;
    lock();
    fstat(fd, &stat); /* again: the length may have changed before the lock was ours */
    if (length <= stat.st_size || room(length - stat.st_size) > 0) {
        /* What is cut off and grown again later reads as zeros, in the shadow too. */
        if (has_shadow(path) && length < stat.st_size) mark(&stat, length, stat.st_size - length);
        result = real_ftruncate(fd, length);
    }
    int saved = errno;
    unlock();
    errno = saved;
    return result;
}

int posix_fallocate(int fd, off_t at, off_t length) {
    struct stat stat;
    char path[PATH_MAX];
    on();
    if (watched(fd, &stat, path) && flag(&control->disk_full)) return ENOSPC;
    return real_posix_fallocate(fd, at, length);
}

/* ---- Names -------------------------------------------------------------------------------- */

static int opened(int fd, int flags, const struct stat *before) {
    struct stat stat;
    char path[PATH_MAX];
    if (fd < 0 || !(flags & (O_CREAT | O_TRUNC)) || !watched(fd, &stat, path)) return fd;
    int saved = errno;
    lock();
    shadow_create(path, stat.st_mode);
    if (flags & O_TRUNC && has_shadow(path)) mark(&stat, 0, before->st_size);
    unlock();
    errno = saved;
    return fd;
}

#define NEEDS_MODE(flags) ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE)

int openat(int at, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = NEEDS_MODE(flags) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    struct stat before = {0};
    int saved = errno;
    if (on() && flags & O_TRUNC && fstatat(at, path, &before, 0) != 0) errno = saved;
    return opened(real_openat(at, path, flags, mode), flags, &before);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = NEEDS_MODE(flags) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return openat(AT_FDCWD, path, flags, mode);
}

int creat(const char *path, mode_t mode) {
    return openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

int unlinkat(int at, const char *given, int flags) {
    char path[PATH_MAX];
    struct stat stat;
    int ours = !(flags & AT_REMOVEDIR) && resolve(at, given, path);
    int last = ours && lstat(path, &stat) == 0 && stat.st_nlink == 1;
    on();
    int result = real_unlinkat(at, given, flags), saved = errno;
    if (result == 0 && ours) shadow_unlink(path);
    if (result == 0 && last) forget(&stat);
    errno = saved;
    return result;
}

int unlink(const char *given) { return unlinkat(AT_FDCWD, given, 0); }

int rename(const char *given_from, const char *given_to) {
    char from[PATH_MAX], to[PATH_MAX], shadow_from[PATH_MAX], shadow_to[PATH_MAX];
    struct stat stat;
    int from_ours = resolve(AT_FDCWD, given_from, from), to_ours = resolve(AT_FDCWD, given_to, to);
    if (from_ours && to_ours && strcmp(from, to) == 0) return real_rename(given_from, given_to);
    int replaces = to_ours && lstat(to, &stat) == 0 && stat.st_nlink == 1;
    on();
    int result = real_rename(given_from, given_to), saved = errno;
    if (result != 0 || !(from_ours || to_ours)) return result;
    if (replaces) forget(&stat);
    if (from_ours && to_ours) {
        shadow_path(from, shadow_from);
        shadow_path(to, shadow_to);
        real_rename(shadow_from, shadow_to);
    } else if (from_ours) {
        shadow_unlink(from);
    } else if (lstat(to, &stat) == 0 && S_ISREG(stat.st_mode)) {
        lock();
        shadow_create(to, stat.st_mode);
        if (has_shadow(to)) mark(&stat, 0, stat.st_size);
        unlock();
    }
    errno = saved;
    return 0;
}

#define ALIAS(name) __attribute__((alias(#name)))
int open64(const char *path, int flags, ...) ALIAS(open);
int openat64(int at, const char *path, int flags, ...) ALIAS(openat);
int creat64(const char *path, mode_t mode) ALIAS(creat);
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t at) ALIAS(pwrite);
ssize_t pwritev64(int fd, const struct iovec *parts, int length, off_t at) ALIAS(pwritev);
int ftruncate64(int fd, off_t length) ALIAS(ftruncate);
int posix_fallocate64(int fd, off_t at, off_t length) ALIAS(posix_fallocate);

#include "engine/epoch/stats_file.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd_identity.h"
#include "base/json.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind { NUMBER, REAL, ACCESS };

#define FIELD(name, kind) { #name, offsetof(struct varve_stats, name), kind }

static const struct {
	const char *name;
	size_t at;
	enum kind kind;
} fields[] = {
	FIELD(epoch, NUMBER),          FIELD(bytes_memory, NUMBER),   FIELD(bytes_unchanged, NUMBER),
	FIELD(bytes_zero, NUMBER),     FIELD(bytes_dup_time, NUMBER), FIELD(bytes_dup_space, NUMBER),
	FIELD(bytes_dup_ranks, NUMBER), FIELD(bytes_new, NUMBER),      FIELD(bytes_stored, NUMBER),   FIELD(bytes_layer, NUMBER),
	FIELD(seconds_blocked, REAL),  FIELD(bytes_dirty, NUMBER),    FIELD(bytes_copied, NUMBER),
	FIELD(wait, ACCESS),           FIELD(cow, ACCESS),            FIELD(avoided, ACCESS),
	FIELD(after, ACCESS),          FIELD(seconds_faults, REAL),   FIELD(seconds_waits, REAL),
	FIELD(seconds_flush, REAL),    FIELD(bandwidth, REAL),        FIELD(bytes_lent, NUMBER),
	FIELD(seconds_ranks, REAL),
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]), ACCESS_FIELDS = 4 };

_Static_assert(sizeof(struct varve_stats) == 8 * (FIELDS + ACCESS_FIELDS), "a field of varve_stats is not in the table");

/* Does not depend on the decimal point of the program's locale. */
static void add_real(struct vv_json *j, const char *key, double v)
{
	if (v >= 0 && v < 1e18)
		vv_json_decimal(j, key, (uint64_t)v, (uint32_t)((v - (double)(uint64_t)v) * 1e9));
	else
		vv_json_text(j, key, NULL);
}

static void add_fields(struct vv_json *j, const struct varve_stats *st)
{
	for (size_t i = 0; i < FIELDS; i++) {
		const void *p = (const char *)st + fields[i].at;
		const struct varve_access *a = p;

		if (fields[i].kind == NUMBER) {
			vv_json_number(j, fields[i].name, *(const uint64_t *)p);
		} else if (fields[i].kind == REAL) {
			add_real(j, fields[i].name, *(const double *)p);
		} else {
			vv_json_object(j, fields[i].name);
			vv_json_number(j, "pages", a->pages);
			vv_json_number(j, "bytes", a->bytes);
			vv_json_end(j);
		}
	}
}

/* Other writers are locked out while the end of the file is examined, since a line may still be in
 * progress. The wait is short. If the lock is held for long, or the file system has no locks, the
 * result may be an empty line. */
static void lock_for_a_moment(int fd)
{
	for (int i = 0; i < 100 && flock(fd, LOCK_EX | LOCK_NB) < 0 && (errno == EWOULDBLOCK || errno == EINTR); i++)
		vv_clock_sleep(0.001);
}

/* Does the file end in the middle of a line? An unreadable file is assumed to end with a complete
 * line. */
static bool ends_early(int fd, const char *path)
{
	struct stat st;
	char last = '\n';
	int in;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return false;
	in = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (in >= 0) {
		if (pread(in, &last, 1, st.st_size - 1) < 1)
			last = '\n';
		close(in);
	}
	return last != '\n';
}

/* Is it still the file that was opened? A program may close descriptors that it has not opened:
 * base/fd_identity.h. */
static int check(const struct vv_fd_identity *own, int fd, const char *path)
{
	return vv_fd_identity_fits(own, fd) ? 0 : vv_fd_identity_err(EBADF, "cannot write to the statistics file '%s'", path);
}

/* Writes the line at once, so that no other line comes in between. The rest of a short write cannot
 * be added later for the same reason. Then the torn line is ended. */
static int write_line(int fd, const char *path, const struct vv_buf *b)
{
	ssize_t n;

	do
		n = write(fd, b->p, b->n);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)b->n)
		return 0;
	if (n < 0)
		return vv_err_sys(errno, "cannot write to the statistics file '%s'", path);
	if (write(fd, "\n", 1) == 1)
		return vv_err_set(VV_EIO, "the statistics file '%s' took only %zd of %zu bytes; the line is torn", path, n, b->n);
	return vv_err_sys(errno, "the statistics file '%s' took only %zd of %zu bytes", path, n, b->n);
}

int vv_stats_file_add(const char *path, const char *lineage, uint32_t rank, uint64_t time_ns, int rc, const char *error,
		   const struct varve_stats *st)
{
	struct vv_json j = { .dense = true };
	/* O_NONBLOCK: a pipe without a reader is an error and does not block the program. */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666), done;
	struct vv_fd_identity own;

	if (fd < 0)
		return vv_err_sys(errno, "cannot open the statistics file '%s'", path);
	own = vv_fd_identity_of(fd);
	lock_for_a_moment(fd);
	if (ends_early(fd, path))
		vv_buf_add(&j.buf, "\n", 1);
	vv_json_object(&j, NULL);
	vv_json_decimal(&j, "time", time_ns / 1000000000, time_ns % 1000000000);
	vv_json_text(&j, "lineage", lineage);
	vv_json_number(&j, "rank", rank);
	vv_json_bool(&j, "ok", rc >= 0);
	if (rc < 0)
		vv_json_text(&j, "error", error ? error : vv_err_name(rc));
	add_fields(&j, st);
	vv_json_end(&j);
	vv_buf_add(&j.buf, "\n", 1);
	done = vv_buf_check(&j.buf);
	if (done == 0)
		done = check(&own, fd, path);
	if (done == 0)
		done = write_line(fd, path, &j.buf);
	vv_json_fini(&j);
	if (vv_fd_identity_fits(&own, fd)) {
		/* A close does not unlock if a child of fork has the file open, too. */
		flock(fd, LOCK_UN);
		close(fd);
	}
	return done;
}

#include "engine/files/output_files.h"
#include "base/fs.h"
#include "base/mem.h"
#include "engine/read/read_many.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum {
	FILES_MOST = 16384,    /* files in progress at a time, */
	RUNS_MOST = 512 << 10, /* and runs of these files, approximately */
	FILE_DESCRIPTORS = 2,  /* a file and its folder */
	SYNC_LEAST = 1 << 20,
	SMALL = 4 << 20,       /* larger files become durable while others are read */
};

static bool is_stopped(const struct vv_output_files *k)
{
	return k->opt->stop && atomic_load(k->opt->stop);
}

void vv_output_files_miss(struct vv_output_files *k, const char *name, int rc)
{
	struct vv_err_state error;

	vv_err_save(rc, &error);
	pthread_mutex_lock(&k->lock);
	if (!k->error.code)
		k->error = error;
	if (rc == VV_ENOSPC)
		atomic_fetch_add(&k->given_up, 1);
	vv_unpack_miss(&k->report, name);
	pthread_mutex_unlock(&k->lock);
}

/* Ends all writing to the file; false if it had ended already. */
static bool end_writing(struct vv_output *o)
{
	bool was_open;

	pthread_rwlock_wrlock(&o->lock);
	was_open = o->in_progress;
	o->in_progress = false;
	pthread_rwlock_unlock(&o->lock);
	return was_open;
}

static bool give_up(struct vv_output_files *k, struct vv_output *o, int rc)
{
	if (!end_writing(o))
		return false;
	vv_output_dir_abort(&o->to);
	vv_output_files_miss(k, o->from.file->name, rc);
	return true;
}

static bool is_open(struct vv_output *o)
{
	bool open;

	pthread_rwlock_rdlock(&o->lock);
	open = o->in_progress;
	pthread_rwlock_unlock(&o->lock);
	return open;
}

static bool wants(void *arg, size_t i)
{
	return is_open(&((struct vv_output_files *)arg)->v[i]);
}

static uint64_t length_of(const struct iovec *v, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += v[i].iov_len;
	return sum;
}

static int write_out(struct vv_output_files *k, struct vv_output *o, uint64_t at, const struct iovec *v, int n, uint64_t len)
{
	struct iovec left[VV_READ_MANY_PARTS];

	memcpy(left, v, (size_t)n * sizeof(*v));
	if (vv_fs_write_all(vv_fs_real(), o->to.fd, left, n, (off_t)at) < 0) {
		bool too_large = errno == EFBIG; /* a limit of this file, not a lack of space */
		int rc = vv_err_sys(errno, "cannot write '%s' below '%s'", o->from.file->name, k->target->path);

		return too_large ? VV_EIO : rc;
	}
	if (len >= SYNC_LEAST) /* a hint: the disk writes while the threads compute */
		(void)sync_file_range(o->to.fd, (off_t)at, (off_t)len, SYNC_FILE_RANGE_WRITE);
	return 0;
}

static int put(struct vv_output_files *k, struct vv_output *o, uint64_t at, const struct iovec *v, int n)
{
	uint64_t len = length_of(v, n);
	int rc = 0;

	if (is_stopped(k))
		return vv_err_set(VV_EIO, "interrupted");
	if (!k->opt->test)
		rc = write_out(k, o, at, v, n, len);
	if (rc == 0)
		vv_progress_report(&k->opt->progress, atomic_fetch_add(&k->done, len) + len, k->bytes);
	return rc;
}

/* For lack of space gives up the last file in progress, so that the files before it can be
 * completed. Another thread may have done so since `before`. */
static void make_space(struct vv_output_files *k, unsigned before)
{
	pthread_mutex_lock(&k->space);
	for (size_t i = k->n; atomic_load(&k->given_up) == before && i-- > 0;)
		give_up(k, &k->v[i], VV_ENOSPC);
	pthread_mutex_unlock(&k->space);
}

static void there(void *arg, size_t i, uint64_t at, const struct iovec *v, int n)
{
	struct vv_output_files *k = arg;
	struct vv_output *o = &k->v[i];
	int rc = VV_ENOSPC;

	while (rc == VV_ENOSPC) {
		unsigned before = atomic_load(&k->given_up);

		pthread_rwlock_rdlock(&o->lock);
		rc = o->in_progress ? put(k, o, at, v, n) : 0;
		pthread_rwlock_unlock(&o->lock);
		if (rc == VV_ENOSPC)
			make_space(k, before);
	}
	if (rc)
		give_up(k, o, rc);
}

static void on_error(void *arg, size_t i, int rc)
{
	struct vv_output_files *k = arg;

	give_up(k, &k->v[i], rc);
}

static void commit(struct vv_output_files *k, struct vv_output *o)
{
	int rc = vv_output_dir_commit(&o->to, k->opt->force);

	o->is_done = rc == 0;
	if (rc)
		vv_output_files_miss(k, o->from.file->name, rc);
}

/* The first commit also writes the metadata of the others, so a batch costs half as
 * much as single commits. */
static void commit_waiting(struct vv_output_files *k, size_t least)
{
	struct vv_output *batch[VV_OUTPUT_FILES_BATCH];
	size_t n;

	pthread_mutex_lock(&k->lock);
	n = k->n_waiting < least ? 0 : k->n_waiting;
	memcpy(batch, k->waiting, n * sizeof(batch[0]));
	k->n_waiting -= n;
	pthread_mutex_unlock(&k->lock);
	for (size_t i = 0; i < n; i++)
		commit(k, batch[i]);
}

static bool let_wait(struct vv_output_files *k, struct vv_output *o)
{
	bool waits = o->from.region->shape.len < SMALL;

	pthread_mutex_lock(&k->lock);
	waits &= k->n_waiting < VV_OUTPUT_FILES_BATCH;
	if (waits)
		k->waiting[k->n_waiting++] = o;
	pthread_mutex_unlock(&k->lock);
	return waits;
}

/* Sets attributes while the file is still writable. */
static void keep_attrs(struct vv_output_files *k, struct vv_output *o)
{
	const struct vv_manifest_file *f = o->from.file;

	if (f->attrs.n == 0)
		return;
	pthread_mutex_lock(&k->lock);
	vv_xattr_write(o->to.fd, f->name, &f->attrs, &k->report.left);
	pthread_mutex_unlock(&k->lock);
}

static void on_complete(void *arg, size_t i)
{
	struct vv_output_files *k = arg;
	struct vv_output *o = &k->v[i];
	const struct vv_manifest_file *f = o->from.file;
	struct timespec mtime = { .tv_sec = (time_t)f->mtime_s, .tv_nsec = (long)f->mtime_ns };
	int rc;

	if (!end_writing(o))
		return;
	if (k->opt->test) {
		o->is_done = true;
		return;
	}
	keep_attrs(k, o);
	rc = vv_output_dir_set_attributes(&o->to, o->from.region->shape.len, f->mode, mtime);
	if (rc) {
		vv_output_dir_abort(&o->to);
		vv_output_files_miss(k, f->name, rc);
	} else if (!let_wait(k, o)) {
		commit(k, o);
	}
	commit_waiting(k, VV_OUTPUT_FILES_BATCH);
}

bool vv_output_files_begin(struct vv_output_files *k, struct vv_unpack_file file)
{
	struct vv_output *o = &k->v[k->n];
	bool full = atomic_load(&k->given_up);
	int rc;

	if (k->n == k->most || k->n_runs >= RUNS_MOST)
		return false;
	o->to = (struct vv_output_dir_file){ .fd = -1, .folder = -1 };
	if (full || is_stopped(k))
		rc = vv_err_set(full ? VV_ENOSPC : VV_EIO, full ? "no space is left" : "interrupted");
	else
		rc = k->opt->test ? 0 : vv_output_dir_create(k->target, file.file->name, &o->to);
	o->from = file;
	o->in_progress = rc == 0;
	o->is_done = false;
	k->n += rc == 0;
	k->n_runs += rc == 0 ? file.region->runs.n : 0;
	if (rc)
		vv_output_files_miss(k, file.file->name, rc);
	return true;
}

int vv_output_files_run(struct vv_output_files *k)
{
	const struct vv_read_many to = { k, wants, there, on_error, on_complete, &k->blocks };
	const struct vv_runs **runs = vv_mem_new(k->n, sizeof(*runs));
	int rc = runs ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < k->n; i++)
		runs[i] = &k->v[i].from.region->runs;
	if (rc == 0)
		rc = vv_read_many_read(k->lineage, k->pool, runs, k->n, &to);
	commit_waiting(k, 0);
	for (size_t i = 0; i < k->n; i++) {
		struct vv_output *o = &k->v[i];

		if (is_open(o))
			give_up(k, o, rc ? rc : vv_err_set(VV_EIO, "not all of '%s' was read: this is a fault of varve, please report it", o->from.file->name));
		k->report.files += o->is_done;
		k->report.bytes += o->is_done ? o->from.region->shape.len : 0;
	}
	k->n = k->n_runs = 0;
	vv_mem_free(runs);
	return rc;
}

int vv_output_files_init(struct vv_output_files *k, size_t n_files)
{
	pthread_mutex_init(&k->lock, NULL);
	pthread_mutex_init(&k->space, NULL);
	k->most = n_files < FILES_MOST ? n_files : FILES_MOST;
	if (!k->opt->test)
		k->most = vv_read_many_files(k->most, FILE_DESCRIPTORS);
	k->v = vv_mem_new(k->most, sizeof(*k->v));
	for (size_t i = 0; k->v && i < k->most; i++)
		pthread_rwlock_init(&k->v[i].lock, NULL);
	return k->v ? 0 : VV_ENOMEM;
}

void vv_output_files_fini(struct vv_output_files *k)
{
	for (size_t i = 0; k->v && i < k->most; i++)
		pthread_rwlock_destroy(&k->v[i].lock);
	vv_mem_free(k->v);
	pthread_mutex_destroy(&k->space);
	pthread_mutex_destroy(&k->lock);
}

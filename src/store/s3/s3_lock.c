/* A lock is a lease object that names its holder. A server that supports If-None-Match on PUT
 * admits exactly one writer. With other servers the last writer wins, so every writer watches for a
 * moment whose lease stays. That protects against concurrent writers, but not against one that
 * sleeps longer than that between its check and its write.
 *
 * A holder known to be dead (same host, boot and pid namespace; no such process) is replaced. Any
 * other lease is left to the user to judge. */
#include "store/s3/s3_lock.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "store/s3/s3.h"
#include "store/s3/s3_priv.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEASE_BYTES 1024
#define TRIES 4

struct lease {
	char host[128];
	char boot[64];  /* /proc/sys/kernel/random/boot_id */
	char space[64]; /* the pid namespace: a pid is meaningless outside of it */
	long pid;
	char start[32]; /* of the process, in ticks since the boot */
	char nonce[VV_S3_NONCE];
	char since[32];
};

struct s3_lock {
	struct vv_lock base;
	char *key;
	struct lease mine;
};

/* The first line of a small file; "-" if there is none. */
static void read_line(const char *path, char *out, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, cap - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	if (!out[0])
		snprintf(out, cap, "-");
}

/* Field 22 of /proc/PID/stat. The name in field 2 may hold any character, so fields are counted
 * from its last parenthesis. */
static void start_of(long pid, char *out, size_t cap)
{
	char path[64], stat[1024], *p, *save = NULL;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	read_line(path, stat, sizeof(stat));
	p = strrchr(stat, ')');
	p = p ? strtok_r(p + 1, " ", &save) : NULL;
	for (int field = 3; p && field < 22; field++)
		p = strtok_r(NULL, " ", &save);
	snprintf(out, cap, "%s", p ? p : "-");
}

static int describe_self(struct lease *l)
{
	time_t now = time(NULL);
	struct tm tm;
	ssize_t n;

	*l = (struct lease){ .pid = (long)getpid() };
	if (gethostname(l->host, sizeof(l->host) - 1) < 0 || !l->host[0] || strpbrk(l->host, " \n"))
		snprintf(l->host, sizeof(l->host), "unknown");
	read_line("/proc/sys/kernel/random/boot_id", l->boot, sizeof(l->boot));
	n = readlink("/proc/thread-self/ns/pid", l->space, sizeof(l->space) - 1);
	if (n <= 0)
		snprintf(l->space, sizeof(l->space), "-");
	start_of(l->pid, l->start, sizeof(l->start));
	strftime(l->since, sizeof(l->since), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	return vv_s3_nonce(l->nonce);
}

static int format(const struct lease *l, char out[LEASE_BYTES])
{
	return snprintf(out, LEASE_BYTES,
			"varve lock 1\nhost %s\nboot %s\nspace %s\npid %ld\nstart %s\nnonce %s\nsince %s\n", l->host,
			l->boot, l->space, l->pid, l->start, l->nonce, l->since);
}

static bool parse(const char *text, struct lease *l)
{
	return sscanf(text,
		      "varve lock 1\nhost %127s\nboot %63s\nspace %63s\npid %ld\nstart %31s\nnonce %32s\nsince %31s\n",
		      l->host, l->boot, l->space, &l->pid, l->start, l->nonce, l->since) == 7 &&
	       l->pid > 0;
}

/* Returns true only if the holder is certainly dead. */
static bool dead(const struct lease *l, const struct lease *mine)
{
	char start[sizeof(l->start)];

	if (strcmp(l->host, mine->host) != 0 || strcmp(l->boot, mine->boot) != 0 ||
	    strcmp(l->space, mine->space) != 0 || strcmp(l->boot, "-") == 0)
		return false;
	if (kill((pid_t)l->pid, 0) < 0 && errno == ESRCH)
		return true;
	start_of(l->pid, start, sizeof(start));
	return strcmp(start, "-") != 0 && strcmp(l->start, "-") != 0 && strcmp(start, l->start) != 0;
}

/* Reads the present lease: 1 with *l and etag, 0 if there is none. A lease that cannot be parsed
 * has pid 0. */
static int read_lease(struct vv_s3 *s, const char *key, struct lease *l, char *etag, size_t cap)
{
	char text[LEASE_BYTES] = "";
	struct vv_s3_request r = { .method = "GET", .key = key, .into = text, .into_n = sizeof(text) - 1 };
	struct vv_s3_answer a = { 0 };
	int rc = vv_s3_http_call(&s->http, &r, &a);

	*l = (struct lease){ 0 };
	if (rc == 0) {
		snprintf(etag, cap, "%s", a.etag);
		if (!parse(text, l))
			*l = (struct lease){ 0 };
		rc = 1;
	} else if (a.too_much) {
		etag[0] = '\0';
		rc = 1;
	} else if (rc == VV_ENOENT && strcmp(a.code, "NoSuchBucket") != 0) {
		rc = 0;
	}
	vv_s3_http_done(&a);
	return rc;
}

/* 1: written; 0: refused, another writer was faster. */
static int write_lease(struct vv_s3 *s, const struct s3_lock *k, const char *header, const char *value)
{
	char text[LEASE_BYTES];
	struct vv_s3_request r = { .method = "PUT", .key = k->key, .body = text };
	struct vv_s3_answer a = { 0 };
	int rc;

	r.body_n = (size_t)format(&k->mine, text);
	r.headers[0] = (struct vv_s3_pair){ header, value };
	r.n_headers = *value ? 1 : 0;
	rc = vv_s3_http_call(&s->http, &r, &a);
	if (rc < 0 && a.status == 501 && r.n_headers) { /* servers that refuse unknown headers */
		r.n_headers = 0;
		rc = vv_s3_http_call(&s->http, &r, &a);
	}
	if (rc == 0)
		rc = 1;
	else if (a.status == 412 || a.status == 409)
		rc = 0;
	vv_s3_http_done(&a);
	return rc;
}

static int busy(const struct vv_s3 *s, const struct s3_lock *k, const struct lease *l)
{
	bool restarted = strcmp(l->host, k->mine.host) == 0 && strcmp(l->boot, k->mine.boot) != 0;

	if (l->pid == 0)
		return vv_err_set(VV_EBUSY,
				  "s3: the lock %s/%s holds something that is no lock; delete that object to go on",
				  s->conf.bucket, k->key);
	return vv_err_set(
		VV_EBUSY,
		"s3: the lock %s/%s is held by process %ld on host %s since %s%s; if that process is gone, delete "
		"the object s3://%s/%s",
		s->conf.bucket, k->key, l->pid, l->host, l->since,
		restarted ? " (before the last start of this host, or on another of its name)" : "", s->conf.bucket,
		k->key);
}

/* Finds out whether the server supports conditional writes. It writes this process's new lease
 * again on the condition that there is none: a server that compares refuses. */
static int probe_conditional_put(struct vv_s3 *s, const struct s3_lock *k, bool took_over)
{
	if (atomic_load(&s->compares) == 0) {
		int rc = write_lease(s, k, "if-none-match", "*");

		if (rc < 0)
			return rc;
		atomic_store(&s->compares, rc == 0 ? 1 : -1);
	}
	if (took_over || atomic_load(&s->compares) < 0)
		vv_clock_sleep(s->conf.settle_ms / 1e3);
	return 0;
}

/* 0: held; 1: another writer interfered, try again. */
static int try_lock(struct vv_s3 *s, const struct s3_lock *k)
{
	char etag[sizeof(((struct vv_s3_answer *)0)->etag)] = "";
	struct lease now;
	int there = read_lease(s, k->key, &now, etag, sizeof(etag)), rc;

	if (there < 0)
		return there;
	/* the write succeeded, but its answer was lost */
	if (there && strcmp(now.nonce, k->mine.nonce) == 0)
		return 0;
	if (there && (now.pid == 0 || !dead(&now, &k->mine)))
		return busy(s, k, &now);
	rc = there ? write_lease(s, k, "if-match", etag) : write_lease(s, k, "if-none-match", "*");
	if (rc <= 0)
		return rc < 0 ? rc : 1;
	rc = probe_conditional_put(s, k, there);
	if (rc < 0)
		return rc;
	there = read_lease(s, k->key, &now, etag, sizeof(etag));
	if (there < 0)
		return there;
	return there && strcmp(now.nonce, k->mine.nonce) == 0 ? 0 : 1;
}

static void free_lock(struct s3_lock *k)
{
	vv_mem_free(k->base.name);
	vv_mem_free(k->key);
	vv_mem_free(k);
}

int vv_s3_lock(struct vv_store *store, const char *name, struct vv_lock **out)
{
	struct vv_s3 *s = (struct vv_s3 *)store;
	struct s3_lock *k = vv_mem_new(1, sizeof(*k));
	int rc = VV_ENOMEM;

	if (!k)
		return VV_ENOMEM;
	k->base.store = store;
	k->base.name = vv_mem_strdup(name);
	k->key = vv_s3_key(s, name);
	if (k->base.name && k->key)
		rc = describe_self(&k->mine);
	if (rc == 0) {
		rc = 1;
		for (int i = 0; i < TRIES && rc == 1; i++)
			rc = try_lock(s, k);
		if (rc == 1)
			rc = vv_err_set(VV_EBUSY, "s3: the lock %s/%s changes hands all the time", s->conf.bucket,
					k->key);
	}
	if (rc < 0)
		free_lock(k);
	else
		*out = &k->base;
	return rc;
}

/* Sends one DELETE of the lease with this ETag. A server that compares leaves a later one alone;
 * one that compares for PUT only may refuse the header. Returns true if another try may succeed. */
static bool send_delete(struct vv_s3 *s, const struct s3_lock *k, const char *etag)
{
	struct vv_s3_request r = { .method = "DELETE", .key = k->key, .once = true, .headers = { { "if-match", etag } } };
	struct vv_s3_answer a = { 0 };
	bool again;
	int rc;

	r.n_headers = *etag && atomic_load(&s->compares) > 0;
	rc = vv_s3_http_call(&s->http, &r, &a);
	if (rc < 0 && r.n_headers && (a.status == 400 || a.status == 501)) {
		vv_s3_http_done(&a);
		a = (struct vv_s3_answer){ 0 };
		r.n_headers = 0;
		rc = vv_s3_http_call(&s->http, &r, &a);
	}
	again = rc < 0 && vv_s3_http_may_pass(&a);
	vv_s3_http_done(&a);
	return again;
}

/* If the answer is lost, the lease may be gone, and the lock may be another's. So each DELETE is
 * sent once, after a look at the lease. */
static void delete_lease(struct vv_s3 *s, const struct s3_lock *k)
{
	char etag[sizeof(((struct vv_s3_answer *)0)->etag)];
	bool again = true;

	for (unsigned try = 1; again && try <= 1 + s->conf.retries; try++) {
		struct lease now;

		if (try > 1)
			vv_s3_http_pause(&s->conf, try);
		if (read_lease(s, k->key, &now, etag, sizeof(etag)) != 1 || strcmp(now.nonce, k->mine.nonce) != 0)
			return;
		again = send_delete(s, k, etag);
	}
}

void vv_s3_lock_release(struct vv_lock *lock)
{
	struct s3_lock *k = (struct s3_lock *)lock;
	struct vv_err_state st;

	vv_err_save(0, &st); /* unlock is often part of handling another error */
	delete_lease((struct vv_s3 *)lock->store, k);
	vv_err_restore(&st);
	free_lock(k);
}

int vv_s3_lock_look(struct vv_store *store, const char *name, struct vv_lock_holder *out)
{
	struct vv_s3 *s = (struct vv_s3 *)store;
	char etag[sizeof(((struct vv_s3_answer *)0)->etag)], *key = vv_s3_key(s, name);
	struct lease now, mine;
	int rc = key ? describe_self(&mine) : VV_ENOMEM;

	if (rc == 0)
		rc = read_lease(s, key, &now, etag, sizeof(etag));
	vv_mem_free(key);
	if (rc != 1)
		return rc;
	if (now.pid == 0 || dead(&now, &mine))
		return 0;
	snprintf(out->words, sizeof(out->words), "pid %ld on %.127s", now.pid, now.host);
	if (strcmp(now.host, mine.host) == 0 && strcmp(now.boot, mine.boot) == 0 && strcmp(now.space, mine.space) == 0)
		out->pid = now.pid;
	return 1;
}

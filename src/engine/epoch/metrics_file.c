#include "engine/epoch/metrics_file.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd_identity.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own_fds.h"
#include "base/utf8.h"
#include "engine/epoch/background.h"
#include "engine/tiers/tiers.h"
#include "store/store.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

enum kind { NUMBER, NUMBER_IF_ANY, SECONDS, SECONDS_IF_ANY };

#define ROW(field, kind, name, type, help) { name, type, help, offsetof(struct vv_metrics, field), kind }

static const struct {
	const char *name, *type, *help;
	size_t at;
	enum kind kind;
} rows[] = {
	ROW(open, NUMBER, "varve_session_open", "gauge", "1 while the session is open, 0 after it was closed."),
	ROW(opened_ns, SECONDS, "varve_session_start_time_seconds", "gauge", "Time at which the session was opened, since 1970."),
	ROW(epoch, NUMBER, "varve_epoch", "gauge", "Number of the newest durable epoch."),
	ROW(durable_ns, SECONDS_IF_ANY, "varve_epoch_durable_time_seconds", "gauge",
	    "Time at which the newest epoch of the session became durable, since 1970."),
	ROW(bytes_memory, NUMBER, "varve_memory_bytes", "gauge", "Size of all regions in the newest epoch of the session."),
	ROW(epochs, NUMBER, "varve_epochs_total", "counter", "Epochs of the session that became durable."),
	ROW(failures, NUMBER, "varve_epoch_failures_total", "counter", "Epochs of the session that failed."),
	ROW(restarts, NUMBER, "varve_restarts_total", "counter", "Restarts of the session that restored an epoch."),
	ROW(bytes_new, NUMBER, "varve_new_bytes_total", "counter", "New data in the durable epochs of the session, before compression."),
	ROW(bytes_stored, NUMBER, "varve_stored_bytes_total", "counter", "The same data after compression."),
	ROW(bytes_layers, NUMBER, "varve_layer_bytes_total", "counter", "Size of the layers of these epochs, metadata included."),
	ROW(blocked_ns, SECONDS, "varve_blocked_seconds_total", "counter", "Time that the program spent in varve_checkpoint."),
	ROW(flush_ns, SECONDS, "varve_flush_seconds_total", "counter", "Time from the calls of varve_checkpoint to durable epochs."),
	ROW(protected_epoch, NUMBER_IF_ANY, "varve_protected_epoch", "gauge", "Number of the newest epoch whose parity is complete."),
	ROW(bytes_parity, NUMBER_IF_ANY, "varve_parity_bytes_total", "counter", "Parity that the rank has stored for epochs of the session."),
	ROW(parity_ns, SECONDS_IF_ANY, "varve_parity_seconds_total", "counter", "Time that the parity of these epochs took after they were durable."),
};

static uint64_t to_ns(double seconds)
{
	return seconds >= 0 && seconds < 1e9 ? (uint64_t)(seconds * 1e9) : 0;
}

void vv_metrics_file_count(struct vv_metrics *m, const struct varve_stats *st, int rc)
{
	m->blocked_ns += to_ns(st->seconds_blocked);
	if (rc < 0) {
		m->failures++;
		return;
	}
	m->epochs++;
	m->durable_ns = vv_clock_wall_ns();
	m->bytes_memory = st->bytes_memory;
	m->bytes_new += st->bytes_new;
	m->bytes_stored += st->bytes_stored;
	m->bytes_layers += st->bytes_layer;
	m->flush_ns += to_ns(st->seconds_flush);
}

void vv_metrics_file_count_parity(struct vv_metrics *m, uint64_t protected_epoch, uint64_t bytes, double seconds)
{
	m->protected_epoch = protected_epoch;
	m->bytes_parity += bytes;
	m->parity_ns += to_ns(seconds);
}

/* The value of a label: UTF-8 with three characters escaped. */
static void add_quoted(struct vv_buf *b, const char *s)
{
	vv_buf_add(b, "\"", 1);
	while (*s) {
		size_t n = vv_utf8_len(s);

		if (n == 0)
			vv_buf_add(b, "\xef\xbf\xbd", 3); /* U+FFFD */
		else if (*s == '"' || *s == '\\')
			vv_buf_printf(b, "\\%c", *s);
		else if (*s == '\n')
			vv_buf_add(b, "\\n", 2);
		else
			vv_buf_add(b, s, n);
		s += n ? n : 1;
	}
	vv_buf_add(b, "\"", 1);
}

/* The newest epoch of each tier. */
struct tier_rows {
	struct vv_buf *b;
	const char *lineage;
	uint32_t rank;
	bool begun;
};

static void add_tier(void *arg, const char *url, uint64_t newest)
{
	struct tier_rows *t = arg;

	if (!t->begun)
		vv_buf_printf(t->b, "# HELP varve_tier_epoch Number of the newest epoch that was copied to the tier; 0: none, or unknown.\n# TYPE varve_tier_epoch gauge\n");
	t->begun = true;
	vv_buf_printf(t->b, "varve_tier_epoch{store=");
	add_quoted(t->b, url);
	vv_buf_printf(t->b, ",lineage=");
	add_quoted(t->b, t->lineage);
	vv_buf_printf(t->b, ",rank=\"%u\"} %" PRIu64 "\n", t->rank, newest);
}

static void add_rows(struct vv_buf *b, const char *store, const char *lineage, uint32_t rank, const struct vv_metrics *m)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value = *(const uint64_t *)((const char *)m + rows[i].at);

		if ((rows[i].kind == SECONDS_IF_ANY || rows[i].kind == NUMBER_IF_ANY) && value == 0)
			continue;
		vv_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n%s{store=", rows[i].name, rows[i].help, rows[i].name, rows[i].type, rows[i].name);
		add_quoted(b, store);
		vv_buf_printf(b, ",lineage=");
		add_quoted(b, lineage);
		vv_buf_printf(b, ",rank=\"%u\"} ", rank);
		if (rows[i].kind == NUMBER || rows[i].kind == NUMBER_IF_ANY)
			vv_buf_printf(b, "%" PRIu64 "\n", value);
		else
			vv_buf_printf(b, "%" PRIu64 ".%09" PRIu64 "\n", value / 1000000000, value % 1000000000);
	}
}

/* The name does not end in .prom, so that no collector reads it. The file must be new: others may
 * write in the folder, too. */
static int write_new(const char *tmp, const struct vv_buf *b)
{
	struct iovec iov = { b->p, b->n };
	struct vv_fd_identity_fs file;
	struct vv_fd_identity own;
	int fd = vv_own_fds_open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666), rc = 0;

	if (fd < 0)
		return vv_err_sys(errno, "cannot create '%s'%s", tmp, errno == ENOENT ? " (create the folder of the option metrics)" : "");
	own = vv_fd_identity_named(tmp);
	vv_fd_identity_guard(&file, vv_fs_real(), &own);
	if (vv_fs_write_all(&file.fs, fd, &iov, 1, 0) < 0)
		rc = vv_fd_identity_err(errno, "cannot write '%s'", tmp);
	vv_fd_identity_close(&own, fd);
	return rc;
}

static int replace(const char *path, const char *tmp, const struct vv_buf *b)
{
	int rc = write_new(tmp, b);

	if (rc == 0 && rename(tmp, path) < 0)
		rc = vv_err_sys(errno, "cannot rename '%s' to '%s'", tmp, path);
	if (rc)
		unlink(tmp);
	return rc;
}

static int write_file(struct varve *v, const char *folder)
{
	const char *lineage = v->ctx.lineage.name;
	uint32_t rank = v->ctx.rank;
	char *path = vv_mem_printf("%s/varve-%s.r%u.prom", folder, lineage, rank);
	char *tmp = vv_mem_printf("%s/.varve-%s.r%u.prom-%ld", folder, lineage, rank, (long)getpid());
	struct vv_buf b = { 0 };
	int rc = path && tmp ? 0 : VV_ENOMEM;

	add_rows(&b, v->ctx.store->url, lineage, rank, &v->background->metrics);
	if (rank == 0) /* it copies */
		vv_tiers_each(v, add_tier, &(struct tier_rows){ .b = &b, .lineage = lineage, .rank = rank });
	if (rc == 0)
		rc = vv_buf_check(&b);
	if (rc == 0)
		rc = replace(path, tmp, &b);
	vv_buf_fini(&b);
	vv_mem_free(path);
	vv_mem_free(tmp);
	return rc;
}

void vv_metrics_file_update(struct varve *v)
{
	const char *folder = vv_conf_text(&v->ctx.conf, "metrics");
	struct vv_metrics *m = &v->background->metrics;
	struct vv_err_state error;
	bool failed;

	if (!folder[0])
		return;
	vv_err_save(0, &error);
	m->epoch = v->tip.epoch;
	failed = write_file(v, folder) < 0;
	if (failed && !m->failed) /* not again for each epoch */
		vv_log_warn("metrics are not written: %s", vv_err_last());
	m->failed = failed;
	vv_err_restore(&error);
}

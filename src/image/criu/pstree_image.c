#include "image/criu/pstree_image.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "reader/criu_entries.h"

enum { PID = 1, THREADS = 5, MOST = 1 << 20 };

/* Some parents reap their children only every few seconds. */
static const double patience_s = 10, pause_s = 0.005;

static int add(struct vv_process_tree *t, uint64_t pid)
{
	int rc = 0;

	if (pid == 0 || pid > INT32_MAX || t->n == MOST)
		return 0;
	rc = vv_mem_room(&t->pid, t->n, &t->cap, sizeof(*t->pid));
	if (rc == 0)
		t->pid[t->n++] = (pid_t)pid;
	return rc;
}

int vv_pstree_image_read(const uint8_t *image, size_t n, struct vv_process_tree *out)
{
	struct vv_proto left = vv_criu_entries_open(image, n, VV_CRIU_PSTREE), entry;
	struct vv_proto_field f;
	int rc = 0;

	*out = (struct vv_process_tree){ 0 };
	while (rc == 0 && vv_criu_entries_next(&left, &entry))
		while (rc == 0 && vv_proto_next(&entry, &f))
			if (f.number == PID || f.number == THREADS)
				rc = add(out, f.value);
	return rc;
}

/* Returns the first of the ended processes; *n becomes their number. */
static pid_t find_ended(const struct vv_process_tree *t, size_t *n)
{
	pid_t first = 0;

	*n = 0;
	for (size_t i = t->n; i-- > 0;)
		if (vv_process_tree_is_zombie(t->pid[i])) {
			first = t->pid[i];
			++*n;
		}
	return first;
}

void vv_pstree_image_wait(const struct vv_process_tree *t)
{
	size_t n, fewest = SIZE_MAX;
	double since = 0;
	pid_t pid = find_ended(t, &n);

	while (n && (n < fewest || vv_clock_s() - since < patience_s)) {
		if (n < fewest) {
			fewest = n;
			since = vv_clock_s();
		}
		vv_clock_sleep(pause_s);
		pid = find_ended(t, &n);
	}
	if (n)
		vv_log_warn("process %d has ended, and keeps its number until its parent, process %d, hears of it; in a container the first process is to be one "
			    "that does (docker run --init)", (int)pid, (int)vv_process_tree_parent(pid));
}

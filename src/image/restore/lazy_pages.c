#include "image/restore/lazy_pages.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "image/restore/missing_pages.h"
#include "image/process/uffd_keeper.h"
#include "image/restore/fill_pages.h"
#include "image/criu/action_script.h"
#include "image/restore/lazy_plan.h"
#include "image/process/fd_passing.h"
#include "image/process/process_tree.h"
#include "image/restore/watchdog.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	FINISHED = 0x52535446, /* criu's message after all processes have been created */
	NEAR = 256 << 10,      /* bytes to load around a page that a thread waits for */
	STEP = 2 << 20,        /* bytes to load before the next look for faults */
	EVENTS = 16,
	AGAIN_MS = 1,
	/* Last interval of the looks for new children, after 1, 2, 4, ... ms: a child may become
	 * visible late. */
	LOOKS_MS = 256,
	PATIENCE_S = 60,
};

static const uint64_t MS = 1000000; /* ns */

static const uint64_t features = UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP;

struct fault { /* an unanswered fault */
	size_t memory;
	uint64_t addr;
};

struct vv_lazy_pages {
	struct vv_serve_images *images;
	const struct vv_criu *criu;
	struct vv_missing_pages *memory;
	size_t n, cap;
	struct fault *fault;
	size_t n_faults, faults_cap;
	struct vv_watchdog watchdog;
	struct vv_uffd_keeper uffd_socket;
	/* Criu waits there until our part is done; none: the caller has the hook. */
	struct vv_action_script hook;
	struct vv_pool *pool; /* not NULL: all pages are loaded before the processes run */
	/* Word: an eventfd that wakes the thread to read the following flags. */
	int listening, connection, word;
	atomic_bool stopping, hopeless;
	atomic_bool made; /* all processes wait for us to bind them */
	sem_t bound;      /* they are bound, or that has failed */
	uint64_t look_next; /* next look for children, by vv_clock_ns */
	int look_ms;        /* interval to the look after that; 0: no more looks */
	atomic_bool alone; /* criu has ended: pages without a fault may be loaded */
	bool finished; /* all processes are created */
	bool over;     /* they will not be created */
	bool whole;    /* all pages are loaded */
	bool met; /* criu has reached the hook: it does not notice ended processes any more */
	bool started;
	atomic_bool failed, ended; /* ended: no more pages are needed */
	pthread_t thread;
	uint64_t page;
	struct vv_err_state error;
};

static int add_memory(struct vv_lazy_pages *l, struct vv_missing_pages m)
{
	int rc = vv_mem_room(&l->memory, l->n, &l->cap, sizeof(*l->memory));

	if (rc == 0)
		l->memory[l->n++] = m;
	return rc;
}

/* ---- events of the kernel -------------------------------------------------------------------- */

/* A fault that cannot be answered yet is queued until the memory map has settled. */
static int answer(struct vv_lazy_pages *l, size_t i, uint64_t addr)
{
	struct vv_missing_pages *m = &l->memory[i];
	uint64_t done = 0;
	int rc = vv_page_spans_find(&m->left, addr) ? vv_missing_pages_bring(m, addr, NEAR, &done) : vv_missing_pages_zero(m, addr, &done);

	if (rc || done || m->uffd < 0)
		return rc;
	rc = vv_mem_room(&l->fault, l->n_faults, &l->faults_cap, sizeof(*l->fault));
	if (rc == 0)
		l->fault[l->n_faults++] = (struct fault){ i, addr };
	return rc;
}

static int answer_again(struct vv_lazy_pages *l)
{
	size_t n = l->n_faults;
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < n; k++)
		if (l->memory[l->fault[k].memory].uffd >= 0)
			rc = answer(l, l->fault[k].memory, l->fault[k].addr);
	if (n)
		memmove(l->fault, l->fault + n, (l->n_faults - n) * sizeof(*l->fault));
	l->n_faults -= n;
	return rc;
}

static int add_child(struct vv_lazy_pages *l, size_t parent, int uffd)
{
	struct vv_missing_pages m = l->memory[parent];
	int rc = m.uffd_socket >= 0 ? vv_uffd_keeper_keep(m.uffd_socket, uffd) : 0, copied = vv_page_spans_copy(&l->memory[parent].left, &m.left);

	rc = rc ? rc : copied;
	l->look_ms = 1;
	l->look_next = 0;
	m.uffd = uffd;
	m.pidfd = -1;
	m.here = 0;
	m.decoded_to = 0;
	for (size_t i = 0; m.cache && i < m.left.n; i++)
		vv_block_cache_expect_again(m.cache, m.file, m.left.v[i].at, m.left.v[i].hi - m.left.v[i].lo);
	if (rc == 0 && l->watchdog.pid)
		rc = vv_watchdog_hold(&l->watchdog, uffd);
	if (rc == 0)
		rc = add_memory(l, m);
	if (rc) {
		vv_page_spans_fini(&m.left);
		close(uffd);
	}
	return rc;
}

static int handle(struct vv_lazy_pages *l, size_t i, const struct uffd_msg *e)
{
	struct vv_missing_pages *m = &l->memory[i];

	switch (e->event) {
	case UFFD_EVENT_FORK:
		return add_child(l, i, (int)e->arg.fork.ufd);
	case UFFD_EVENT_REMAP:
		return vv_page_spans_move(&m->left, e->arg.remap.from, e->arg.remap.to, e->arg.remap.len);
	case UFFD_EVENT_REMOVE:
	case UFFD_EVENT_UNMAP:
		return vv_page_spans_drop(&m->left, e->arg.remove.start, e->arg.remove.end);
	default:
		return vv_err_set(VV_ENOTSUP, "the kernel tells something of the memory of process %d that is not understood (%u)", (int)m->pid, e->event);
	}
}

/* The kernel reports faults before other events. The address of a page may have changed by then, so
 * faults are answered last. */
static int listen_to(struct vv_lazy_pages *l, size_t i)
{
	struct uffd_msg e[EVENTS];
	ssize_t n = read(l->memory[i].uffd, e, sizeof(e));
	int rc = 0;

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return vv_err_sys(errno, "cannot hear of the memory of process %d", (int)l->memory[i].pid);
	n = n < 0 ? 0 : n / (ssize_t)sizeof(*e);
	for (ssize_t k = 0; rc == 0 && k < n; k++)
		if (e[k].event != UFFD_EVENT_PAGEFAULT)
			rc = handle(l, i, &e[k]);
	for (ssize_t k = 0; rc == 0 && k < n; k++)
		if (e[k].event == UFFD_EVENT_PAGEFAULT && l->memory[i].uffd >= 0)
			rc = answer(l, i, e[k].arg.pagefault.address & ~(l->page - 1));
	return rc;
}

/* ---- criu ------------------------------------------------------------------------------------ */

static struct vv_missing_pages *find_memory(struct vv_lazy_pages *l, pid_t pid)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->memory[i].pid == pid && l->memory[i].uffd < 0 && l->memory[i].pidfd < 0)
			return &l->memory[i];
	return NULL;
}

/* criu reports the numbers of the images: in a private pid namespace the process has a different
 * number here. Returns 0 if there is none. */
static pid_t find_process(const struct vv_lazy_pages *l, pid_t number)
{
	struct vv_process_tree t = { 0 };
	pid_t found = 0;

	if (vv_process_tree_list(l->criu->pid, &t) < 0)
		return 0;
	for (size_t i = 1; i < t.n && !found; i++)
		found = vv_process_tree_inner(t.pid[i]) == number ? t.pid[i] : 0;
	vv_process_tree_fini(&t);
	return found;
}

static int receive_memory(struct vv_lazy_pages *l, pid_t pid)
{
	struct vv_missing_pages *m = find_memory(l, pid);
	pid_t here = m ? find_process(l, pid) : 0;
	int uffd = -1, rc;
	char byte;

	if (vv_fd_passing_receive(l->connection, &byte, 1, &uffd) <= 0 || uffd < 0)
		return vv_err_set(VV_EIO, "criu did not hand over the memory of process %d", (int)pid);
	if (!here) {
		close(uffd);
		return vv_err_set(VV_EIO, "criu hands over the memory of process %d, which is %s", (int)pid, m ? "not there" : "not in the images");
	}
	m->uffd = uffd;
	m->here = here;
	m->runs = l->watchdog.pid;
	m->pidfd = pidfd_open(here, 0);
	if (m->pidfd < 0)
		return vv_err_sys(errno, "cannot watch process %d", (int)pid);
	rc = l->watchdog.pid ? vv_watchdog_hold(&l->watchdog, uffd) : 0;
	return rc || !l->watchdog.pid ? rc : vv_watchdog_watch(&l->watchdog, here, m->pidfd);
}

/* For each process criu sends a number (negative for an ended one) and a descriptor. FINISHED
 * follows after all of them. */
static int read_criu_message(struct vv_lazy_pages *l)
{
	int32_t word;
	ssize_t n = recv(l->connection, &word, sizeof(word), MSG_WAITALL);

	/* If that is too early, criu reports the reason. */
	if (n == 0 || (n < 0 && errno == ECONNRESET)) {
		l->over = !l->finished;
		close(l->connection);
		l->connection = -1;
		return 0;
	}
	if (n != (ssize_t)sizeof(word))
		return errno == EINTR ? 0 : vv_err_sys(errno, "cannot hear of criu's processes");
	if (word == FINISHED)
		l->finished = true;
	return word == FINISHED || word < 0 ? 0 : receive_memory(l, word);
}

static int accept_criu(struct vv_lazy_pages *l)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };

	l->connection = accept4(l->listening, NULL, NULL, SOCK_CLOEXEC);
	if (l->connection < 0)
		return vv_err_sys(errno, "cannot accept criu's connection");
	setsockopt(l->connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	close(l->listening);
	l->listening = -1;
	return 0;
}

static int bind_all(struct vv_lazy_pages *l)
{
	struct pollfd p = { l->connection, POLLIN, 0 };
	int rc = 0;

	/* Messages that criu has sent before it reached its hook. */
	while (rc == 0 && poll(&p, 1, 0) > 0) {
		rc = read_criu_message(l);
		p.fd = l->connection;
	}
	for (size_t i = 0; rc == 0 && i < l->n; i++)
		if (l->memory[i].uffd >= 0)
			rc = vv_uffd_keeper_bind(&l->uffd_socket, l->memory[i].here, l->memory[i].uffd, &l->memory[i].uffd_socket);
	return rc;
}

static int release_processes(struct vv_lazy_pages *l)
{
	int rc = l->pool ? vv_fill_pages_run(l->memory, l->n, l->pool) : bind_all(l);

	l->met = true;
	return rc ? rc : vv_action_script_go(&l->hook);
}

/* ---- the thread ------------------------------------------------------------------------------ */

enum { WORD, CRIU, HOOK, MEMORIES };

static int wait_for_something(struct vv_lazy_pages *l, bool idle)
{
	size_t n = l->n;
	struct pollfd *fds = vv_mem_new(MEMORIES + n, sizeof(*fds));
	uint64_t word;
	int rc = 0, got;

	if (!fds)
		return VV_ENOMEM;
	fds[WORD] = (struct pollfd){ l->word, POLLIN, 0 };
	fds[CRIU] = (struct pollfd){ l->connection >= 0 ? l->connection : l->listening, POLLIN, 0 };
	fds[HOOK] = (struct pollfd){ l->met ? -1 : l->hook.ready[0], POLLIN, 0 };
	for (size_t i = 0; i < n; i++)
		fds[MEMORIES + i] = (struct pollfd){ l->memory[i].uffd, POLLIN, 0 };
	got = poll(fds, MEMORIES + n, l->n_faults ? AGAIN_MS : !idle ? 0 : l->look_ms ? l->look_ms : -1);
	for (size_t i = 0; rc == 0 && got > 0 && i < n; i++)
		if (fds[MEMORIES + i].revents & POLLIN)
			rc = listen_to(l, i);
		else if (fds[MEMORIES + i].revents)
			rc = vv_err_set(VV_EIO, "nothing can be heard of the memory of process %d any more", (int)l->memory[i].pid);
	if (rc == 0 && got > 0 && fds[CRIU].revents)
		rc = l->connection >= 0 ? read_criu_message(l) : accept_criu(l);
	if (rc == 0)
		rc = answer_again(l);
	if (rc == 0 && got > 0 && fds[HOOK].revents)
		rc = release_processes(l);
	if (got > 0 && fds[WORD].revents)
		(void)!read(l->word, &word, sizeof(word));
	vv_mem_free(fds);
	return rc;
}

/* Loads some pages without a fault. *left: some are missing; *found: they are available. Faults
 * of complete processes are still read until all processes are complete: the watchdog holds
 * them, too. */
static int bring_some(struct vv_lazy_pages *l, bool *left, bool *found)
{
	struct vv_missing_pages *next = NULL;
	uint64_t addr = 0, done;

	*left = false;
	for (struct vv_missing_pages *m = l->memory; m < l->memory + l->n && !next; m++) {
		*left |= m->uffd >= 0 && m->left.n;
		if (m->uffd >= 0 && vv_missing_pages_find(m, &addr))
			next = m;
	}
	*found = next;
	if (!next)
		return 0;
	if (next->cache)
		vv_block_cache_read_ahead(next->cache, next->file, next->left.v[0].at, &next->decoded_to);
	return vv_missing_pages_bring(next, addr, STEP, &done);
}

static void look_for_children(struct vv_lazy_pages *l)
{
	uint64_t now = l->look_ms ? vv_clock_ns() : 0;

	if (!now || now < l->look_next)
		return;
	vv_uffd_keeper_follow(&l->uffd_socket);
	l->look_next = now + (uint64_t)l->look_ms * MS;
	l->look_ms = l->look_ms < LOOKS_MS ? 2 * l->look_ms : 0;
}

static void kill_all(struct vv_lazy_pages *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->memory[i].pidfd >= 0)
			pidfd_send_signal(l->memory[i].pidfd, SIGKILL, NULL, 0);
}

static void hang_up(struct vv_lazy_pages *l)
{
	if (l->listening >= 0)
		close(l->listening);
	if (l->connection >= 0)
		close(l->connection);
	l->listening = l->connection = -1;
}

static void *work(void *arg)
{
	struct vv_lazy_pages *l = arg;
	bool left = true, found = true;
	int rc = 0;

	while (rc == 0 && left && !l->over && !atomic_load(&l->stopping)) {
		bool all = l->finished && atomic_load(&l->alone);

		rc = wait_for_something(l, !all || !found);
		if (rc == 0 && atomic_load(&l->hopeless))
			rc = vv_err_set(VV_EDAMAGED, "some of it is missing");
		if (rc == 0 && atomic_exchange(&l->made, false)) {
			rc = bind_all(l);
			l->met = true;
			if (rc == 0)
				sem_post(&l->bound);
		}
		look_for_children(l);
		if (rc == 0 && all)
			rc = bring_some(l, &left, &found);
	}
	atomic_store(&l->ended, true);
	if (rc) {
		vv_err_context(rc, "the program was %s, because not all of its memory can be had", l->watchdog.pid ? "killed" : "not restored");
		vv_err_save(rc, &l->error);
		atomic_store(&l->failed, true); /* before criu notices */
		kill_all(l);
		vv_action_script_close(&l->hook);
		hang_up(l); /* criu cannot create the remaining processes */
		if (l->met)
			vv_process_tree_end_criu(l->criu->folder);
	}
	l->whole = rc == 0 && !left;
	sem_post(&l->bound);
	return NULL;
}

/* ---- interface ------------------------------------------------------------------------------- */

static int check_kernel(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), err = fd < 0 ? errno : 0;

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) < 0)
		err = errno;
	if (fd >= 0)
		close(fd);
	if (!err)
		return 0;
	vv_err_sys(err, "pages cannot come late here, which takes userfaultfd(2) with events, and to be root");
	return vv_err_context(VV_ENOTSUP, "restore without --lazy");
}

static int listen_in(struct vv_lazy_pages *l, const char *folder)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	l->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->listening < 0)
		return vv_err_sys(errno, "cannot make a socket");
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/lazy-pages.socket", folder);
	if (bind(l->listening, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(l->listening, 1) < 0)
		return vv_err_sys(errno, "cannot listen on '%s'", a.sun_path);
	return 0;
}

static int new(struct vv_serve_images *images, struct vv_criu *c, struct vv_lazy_pages **out)
{
	struct vv_lazy_pages *l = vv_mem_new(1, sizeof(*l));
	int rc;

	if (!l)
		return VV_ENOMEM;
	*l = (struct vv_lazy_pages){ .images = images, .criu = c, .hook = VV_ACTION_SCRIPT_NONE, .listening = -1, .connection = -1, .watchdog = VV_WATCHDOG_NONE, .uffd_socket = VV_UFFD_KEEPER_NONE };
	sem_init(&l->bound, 0, 0);
	l->page = (uint64_t)sysconf(_SC_PAGESIZE);
	l->word = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*out = l;
	rc = l->word < 0 ? vv_err_sys(errno, "cannot make an eventfd") : vv_serve_images_refuse(images, vv_lazy_plan_read(images, &l->memory, &l->n, &l->cap));
	if (rc == 0)
		rc = listen_in(l, c->folder);
	vv_criu_add_arg(c, "--lazy-pages");
	return rc;
}

int vv_lazy_pages_open(struct vv_serve_images *images, struct vv_criu *c, bool held, struct vv_lazy_pages **out)
{
	int rc = check_kernel();

	if (rc == 0)
		rc = new(images, c, out);
	if (rc == 0)
		rc = vv_watchdog_open(&(*out)->watchdog, c->folder);
	if (rc == 0)
		rc = vv_uffd_keeper_open(&(*out)->uffd_socket);
	if (rc == 0)
		rc = vv_watchdog_hold(&(*out)->watchdog, (*out)->uffd_socket.alive[1]);
	return rc || held ? rc : vv_action_script_open(&(*out)->hook, c, "post-restore", NULL);
}

/* Processes of one tree can share pages that criu finds to be equal; this method would lose that.
 * So it is only for single processes. */
int vv_lazy_pages_open_eager(struct vv_serve_images *images, struct vv_criu *c, struct vv_pool *pool, struct vv_lazy_pages **out)
{
	int rc;

	if (vv_lazy_plan_count(&images->files) != 1 || vv_action_script_may_run(c->folder) < 0 || check_kernel() < 0) {
		vv_err_clear();
		return 0;
	}
	rc = new(images, c, out);
	if (rc)
		return rc;
	(*out)->pool = pool;
	return vv_action_script_open(&(*out)->hook, c, "post-restore", NULL);
}

int vv_lazy_pages_start(struct vv_lazy_pages *l)
{
	int err = pthread_create(&l->thread, NULL, work, l);

	l->started = err == 0;
	return err ? vv_err_sys(err, "cannot start a thread") : 0;
}

void vv_lazy_pages_wake(struct vv_lazy_pages *l)
{
	const uint64_t one = 1;

	(void)!write(l->word, &one, sizeof(one));
}

bool vv_lazy_pages_needs(struct vv_lazy_pages *l)
{
	return !atomic_load(&l->ended);
}

void vv_lazy_pages_give_up(struct vv_lazy_pages *l)
{
	atomic_store(&l->hopeless, true);
	vv_lazy_pages_wake(l);
}

int vv_lazy_pages_bind(struct vv_lazy_pages *l)
{
	atomic_store(&l->made, true);
	vv_lazy_pages_wake(l);
	while (sem_wait(&l->bound) < 0 && errno == EINTR)
		;
	return atomic_load(&l->failed) ? vv_lazy_pages_wait(l) : 0;
}

void vv_lazy_pages_start_rest(struct vv_lazy_pages *l)
{
	atomic_store(&l->alone, true);
	vv_lazy_pages_wake(l);
}

static void join(struct vv_lazy_pages *l, atomic_bool *why)
{
	if (!l->started)
		return;
	atomic_store(why, true);
	vv_lazy_pages_wake(l);
	pthread_join(l->thread, NULL);
	l->started = false;
}

int vv_lazy_pages_wait(struct vv_lazy_pages *l)
{
	join(l, &l->alone);
	if (l->error.code)
		return vv_err_restore(&l->error);
	return l->over ? vv_err_set(VV_EIO, "criu has ended, and has not said that all processes are there") : 0;
}

bool vv_lazy_pages_failed(struct vv_lazy_pages *l)
{
	return atomic_load(&l->failed);
}

void vv_lazy_pages_close(struct vv_lazy_pages *l)
{
	if (!l)
		return;
	join(l, &l->stopping);
	vv_action_script_close(&l->hook);
	vv_watchdog_close(&l->watchdog);
	for (size_t i = 0; i < l->n; i++) {
		vv_missing_pages_forget(&l->memory[i]);
		if (l->memory[i].pidfd >= 0)
			close(l->memory[i].pidfd);
	}
	if (l->whole)
		vv_uffd_keeper_release(&l->uffd_socket);
	vv_uffd_keeper_close(&l->uffd_socket);
	sem_destroy(&l->bound);
	hang_up(l);
	if (l->word >= 0)
		close(l->word);
	vv_mem_free(l->memory);
	vv_mem_free(l->fault);
	vv_mem_free(l);
}

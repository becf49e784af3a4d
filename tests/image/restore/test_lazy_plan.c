/* Plans of lazy pages, made of canned images of several trees, against one made page by page: each page of an image is either handed to criu or missing in
 * its process, once. Images of other trees are left alone, and images that do not fit each other are refused. */
#include "base/err.h"
#include "base/mem.h"
#include "image/restore/lazy_plan.h"
#include "support/dice.h"
#include "support/proto.h"
#include "vv_test.h"
#include <unistd.h>

enum {
	MAGIC = 0x56084025,
	PRESENT = 4,
	LAZY = 2,
	TREES = 3,
	MOST_PROCESSES = 4,
	FILES = TREES * (2 * MOST_PROCESSES + 2),
	MOST_PAGES = 60
};
enum fault { NONE, NO_PAGES, OTHER_LENGTH, NO_MAP, FAULTS };

static size_t page;

/* ---- an epoch of images ---------------------------------------------------------------------------------------------------------- */

static struct process {
	pid_t pid;
	size_t tree, map, pages;   /* the last two: files */
	uint64_t addr[MOST_PAGES]; /* of each page of its image */
	bool lazy[MOST_PAGES];
	size_t n;
} process[TREES * MOST_PROCESSES];
static size_t n_process;

static struct epoch {
	struct vv_manifest_file file[FILES];
	struct vv_run_table_region region[FILES];
	struct vv_remote_buffer image[FILES];
	struct vv_unpack_rank rank;
	struct vv_serve_images serve;
	size_t n;
} epoch;

static size_t add_file(size_t tree, const char *name, const struct vv_buf *bytes, uint64_t len)
{
	size_t i = epoch.n++;

	CHECK(i < FILES);
	epoch.file[i] = (struct vv_manifest_file){
		.name = tree ? vv_mem_printf("%zu/%s", tree, name) : vv_mem_strdup(name), .region = (uint32_t)i};
	epoch.region[i] = (struct vv_run_table_region){.name = epoch.file[i].name, .shape = {.len = len}};
	CHECK_EQ(vv_remote_buffer_init(&epoch.image[i], len), 0);
	if (bytes && bytes->n)
		memcpy(epoch.image[i].bytes, bytes->p, bytes->n);
	return i;
}

static void add_entry(struct vv_buf *b, uint64_t addr, uint64_t count, bool lazy)
{
	struct vv_buf e = {0};

	proto_number(&e, 1, addr);
	proto_number(&e, 2, count);
	proto_number(&e, 4, PRESENT | (lazy ? LAZY : 0));
	proto_entry(b, &e);
}

static void add_process(size_t tree, pid_t pid, unsigned number, enum fault fault)
{
	struct process *p = &process[n_process++];
	struct vv_buf b = {0}, head = {0};
	uint64_t addr = 0x10000;
	char name[64];

	*p = (struct process){.pid = pid, .tree = tree};
	proto_magic(&b, MAGIC);
	proto_number(&head, 1, number);
	proto_entry(&b, &head);
	for (size_t i = 0, all = upto(8); i < all && p->n + 7 < MOST_PAGES; i++) {
		size_t count = 1 + upto(6);
		bool lazy = upto(1);

		addr += upto(1) * page * (1 + upto(9));
		add_entry(&b, addr, count, lazy);
		for (size_t k = 0; k < count; k++, addr += page) {
			p->addr[p->n] = addr;
			p->lazy[p->n++] = lazy;
		}
	}
	if (fault == NO_MAP)
		b.n--;
	snprintf(name, sizeof(name), "pagemap-%d.img", (int)pid);
	p->map = add_file(tree, name, &b, b.n);
	snprintf(name, sizeof(name), "pages-%u.img", number);
	if (fault != NO_PAGES)
		p->pages = add_file(tree, name, NULL, p->n * page + (fault == OTHER_LENGTH ? page : 0));
	vv_buf_fini(&b);
}

/* trees: 0: one without a folder. One process of the tree `bad` has a fault. */
static void make(size_t trees, enum fault fault, size_t bad)
{
	unsigned number = 1;

	epoch = (struct epoch){.n = 0};
	n_process = 0;
	for (size_t t = trees ? 1 : 0; t <= trees; t++) {
		size_t n = 1 + upto(MOST_PROCESSES - 1), faulty = upto(n - 1);

		number = trees ? 1 : number; /* each tree counts for itself */
		add_file(t, upto(1) ? "inventory.img" : "pagemap-shmem-5.img", NULL, 100);
		add_file(t, "pagemap-7.img.old", NULL, 10);
		for (size_t i = 0; i < n; i++)
			add_process(t, (pid_t)(1 + n_process * 3 + upto(1)), number++,
				    t == bad && i == faulty ? fault : NONE);
	}
	epoch.rank.manifest = (struct vv_manifest){.file = epoch.file, .n_files = epoch.n};
	epoch.rank.table = (struct vv_run_table){.region = epoch.region, .n = epoch.n};
	epoch.serve.files = (struct vv_unpack){.rank = &epoch.rank, .n_ranks = 1, .n_files = epoch.n};
	epoch.serve.remote_images.image = epoch.image;
	epoch.serve.parts = calloc(epoch.n, sizeof(*epoch.serve.parts));
	CHECK(epoch.serve.parts);
	for (size_t i = 0; i < epoch.n; i++) {
		struct vv_serve_images_parts *p = &epoch.serve.parts[i];

		CHECK_EQ(vv_mem_room(&p->v, 0, &p->cap, sizeof(*p->v)), 0);
		p->v[p->n++] = (struct vv_serve_images_part){0, epoch.region[i].shape.len};
	}
}

static void drop(void)
{
	for (size_t i = 0; i < epoch.n; i++) {
		vv_mem_free(epoch.file[i].name);
		vv_remote_buffer_fini(&epoch.image[i]);
		vv_mem_free(epoch.serve.parts[i].v);
	}
	free(epoch.serve.parts);
}

/* ---- plans ------------------------------------------------------------------------------------------------------------------------ */

static bool is_in_parts(size_t file, uint64_t at)
{
	const struct vv_serve_images_parts *p = &epoch.serve.parts[file];
	size_t times = 0;

	for (size_t i = 0; i < p->n; i++)
		times += p->v[i].at <= at && at - p->v[i].at < p->v[i].len;
	CHECK(times < 2);
	return times;
}

static uint64_t count_bytes(size_t file)
{
	const struct vv_serve_images_parts *p = &epoch.serve.parts[file];
	uint64_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->v[i].len;
	return n;
}

static void check_process(const struct process *p, const struct vv_missing_pages *m)
{
	uint64_t missing = 0, criu = 0;

	CHECK(m->file == p->pages && m->remote_buffer == &epoch.image[p->pages] && !m->cache && m->uffd == -1 &&
	      m->uffd_socket == -1 && m->pidfd == -1 && !m->here);
	for (size_t i = 0; i < p->n; i++) {
		const struct vv_page_span *x = vv_page_spans_find(&m->left, p->addr[i]);

		CHECK_EQ(x != NULL, p->lazy[i]);
		CHECK_EQ(is_in_parts(p->pages, i * page), !p->lazy[i]);
		if (x)
			CHECK_EQ(x->at + (p->addr[i] - x->lo), i * page);
		missing += p->lazy[i] ? page : 0;
		criu += p->lazy[i] ? 0 : page;
	}
	for (size_t i = 0; i < m->left.n; i++)
		missing -= m->left.v[i].hi - m->left.v[i].lo;
	CHECK_EQ(missing, 0);
	CHECK_EQ(count_bytes(p->pages), criu);
}

static void forget(struct vv_missing_pages *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vv_missing_pages_forget(&m[i]);
	vv_mem_free(m);
}

static void check_plan(size_t tree, const struct vv_missing_pages *m, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n_process; i++) {
		size_t k = 0;

		if (process[i].tree != tree) {
			CHECK_EQ(count_bytes(process[i].pages), process[i].n * page); /* all of it, as before */
			continue;
		}
		while (k < n && m[k].pid != process[i].pid)
			k++;
		CHECK(k < n);
		check_process(&process[i], &m[k]);
		found++;
	}
	CHECK_EQ(found, n);
}

static void test_plans(void)
{
	for (int round = 0; round < 200; round++) {
		size_t trees = upto(TREES), tree = trees ? 1 + upto(trees - 1) : 0, n = 0, cap = 0;
		struct vv_missing_pages *m = NULL;
		char folder[16] = "";

		make(trees, NONE, 0);
		if (tree)
			snprintf(folder, sizeof(folder), "%zu/", tree);
		epoch.serve.folder = folder;
		CHECK_EQ(vv_lazy_plan_read(&epoch.serve, &m, &n, &cap), 0);
		check_plan(tree, m, n);
		CHECK_EQ(vv_lazy_plan_count(&epoch.serve.files), trees ? 0 : n_process);
		forget(m, n);
		drop();
	}
}

static void test_faults(void)
{
	for (int round = 0; round < 100; round++) {
		enum fault fault = (enum fault)(NO_PAGES + upto(FAULTS - NO_PAGES - 1));
		struct vv_missing_pages *m = NULL;
		size_t n = 0, cap = 0;

		make(0, fault, 0);
		epoch.serve.folder = "";
		CHECK_EQ(vv_lazy_plan_read(&epoch.serve, &m, &n, &cap), VV_EDAMAGED);
		CHECK(n < n_process && strstr(vv_err_last(), "pagemap-"));
		forget(m, n);
		drop();
	}
}

/* Whichever allocation fails, what was planned so far is sound, and nothing is lost. */
static void test_no_memory(void)
{
	int rc = VV_ENOMEM;

	for (long at = 1; rc; at++) {
		struct vv_missing_pages *m = NULL;
		size_t n = 0, cap = 0;

		seed = 4711;
		make(0, NONE, 0);
		epoch.serve.folder = "";
		vv_mem_fail_at(at);
		rc = vv_lazy_plan_read(&epoch.serve, &m, &n, &cap);
		vv_mem_fail_at(0);
		CHECK(rc == 0 ? n == n_process : rc == VV_ENOMEM && n < n_process);
		forget(m, n);
		drop();
	}
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	test_plans();
	test_faults();
	test_no_memory();
	return 0;
}

/* The input as what an image of processes says of itself; its first byte says which part of it: the list of its pages, its process numbers, or what criu asks
 * for. Whatever it is, what is understood of it is sound. */
#include "base/err.h"
#include "core/format/run.h"
#include "image/criu/pagemap_image.h"
#include "image/criu/pstree_image.h"
#include "image/criu/stream_protocol.h"
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static void use_pagelist(const uint8_t *data, size_t size)
{
	uint64_t end = 0, len = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct vv_pagemap_image list;
	int rc = vv_pagemap_image_read(data, size, &list);

	insist(rc == 0 || rc == VV_EDAMAGED);
	insist(rc ? !list.v && !list.n : list.pages != 0);
	for (size_t i = 0; i < list.n; i++) {
		const struct vv_pagemap_image_entry *e = &list.v[i];

		insist(e->len && e->len % page == 0 && e->addr % page == 0 && e->addr >= end && e->addr <= UINT64_MAX - e->len && e->at == len);
		end = e->addr + e->len;
		len += e->len;
	}
	insist(len == list.len && len <= VV_MAX_REGION_BYTES);
	vv_pagemap_image_fini(&list);
}

static void use_pstree(const uint8_t *data, size_t size)
{
	struct vv_process_tree tree;

	insist(vv_pstree_image_read(data, size, &tree) == 0);
	insist(tree.n <= size / 2); /* each has a tag and a value */
	for (size_t i = 0; i < tree.n; i++)
		insist(tree.pid[i] > 0);
	vv_process_tree_fini(&tree);
}

/* Less than a socket takes without being read. */
static void use_streamer(const uint8_t *data, size_t size)
{
	char name[VV_STREAM_PROTOCOL_NAME];
	int pair[2], rc;

	if (size > 16 << 10)
		return;
	insist(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	insist(send(pair[0], data, size, MSG_NOSIGNAL) == (ssize_t)size);
	close(pair[0]);
	while ((rc = vv_stream_protocol_request(pair[1], name)) == 1)
		insist(memchr(name, '\0', sizeof(name)) && name[0] && name[0] != '.' && !strchr(name, '/'));
	insist(rc == 0 || rc == VV_EIO);
	close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const use[])(const uint8_t *, size_t) = { use_pagelist, use_pstree, use_streamer };

	if (size)
		use[data[0] % 3](data + 1, size - 1);
	return 0;
}

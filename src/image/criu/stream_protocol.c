#include "image/criu/stream_protocol.h"
#include "base/err.h"
#include "base/wire.h"
#include "image/process/fd_passing.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	TAG_NAME = 0x0a,   /* field 1, bytes */
	TAG_EXISTS = 0x08, /* field 1, a number */
	PATIENCE_S = 60,
	PIPE = 1 << 20,
};

int vv_stream_protocol_listen(const char *folder, bool serve, int *out)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return vv_err_sys(errno, "cannot make a socket");
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/streamer-%s.sock", folder, serve ? "serve" : "capture");
	if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1) < 0) {
		int err = errno;

		close(fd);
		return vv_err_sys(err, "cannot listen on '%s'", a.sun_path);
	}
	*out = fd;
	return 0;
}

int vv_stream_protocol_accept(int listening, int *out)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return vv_err_sys(errno, "cannot accept criu's connection");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	*out = fd;
	return 0;
}

/* Receives n bytes and returns 1. Returns 0 if the other side closed before the first byte. */
static int receive(int fd, void *to, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = recv(fd, (uint8_t *)to + have, n - have, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != ECONNRESET)
			return vv_err_sys(errno, "cannot read what criu asks for");
		if (got <= 0)
			return have ? vv_err_set(VV_EIO, "criu broke off in the middle of a message") : 0;
		have += (size_t)got;
	}
	return 1;
}

static int parse(const uint8_t *m, size_t n, char name[VV_STREAM_PROTOCOL_NAME])
{
	struct vv_wire w = vv_wire_over(m, n);
	uint8_t tag = vv_wire_u8(&w);

	vv_wire_str(&w, name, VV_STREAM_PROTOCOL_NAME);
	if (w.bad || tag != TAG_NAME || vv_wire_left(&w) || !name[0] || name[0] == '.' || strchr(name, '/'))
		return vv_err_set(VV_EIO, "criu asks for an image in a way that is not understood");
	return 1;
}

int vv_stream_protocol_request(int fd, char name[VV_STREAM_PROTOCOL_NAME])
{
	uint8_t m[VV_STREAM_PROTOCOL_NAME + 8];
	uint32_t n = 0;
	int rc = receive(fd, &n, sizeof(n));

	if (rc <= 0)
		return rc;
	if (n > sizeof(m))
		return vv_err_set(VV_EIO, "criu asks for an image by a name of %u bytes", n);
	rc = receive(fd, m, n);
	return rc < 0 ? rc : parse(m, rc ? n : 0, name);
}

int vv_stream_protocol_reply(int fd, bool exists)
{
	struct {
		uint32_t n;
		uint8_t m[2];
	} reply = { 2, { TAG_EXISTS, exists } };
	const size_t n = sizeof(reply.n) + sizeof(reply.m);

	return send(fd, &reply, n, MSG_NOSIGNAL) == (ssize_t)n ? 0 : vv_err_sys(errno, "cannot answer criu");
}

int vv_stream_protocol_pipe(int fd, int *out)
{
	char byte;
	int got = -1;

	if (vv_fd_passing_receive(fd, &byte, 1, &got) <= 0 || got < 0)
		return vv_err_set(VV_EIO, "criu did not hand over the pipe of an image");
	*out = got;
	(void)!fcntl(*out, F_SETPIPE_SZ, PIPE); /* larger for speed; the default size works, too */
	(void)!fcntl(*out, F_SETFL, O_NONBLOCK);
	return 0;
}

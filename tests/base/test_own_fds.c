/* A program that closes all numbers it does not know, as often as it can, while we open files: none is lost, none becomes another. */
#include "base/own_fds.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPENERS = 3, OPENS = 20000, LOW = 5, HIGH = 60 };

static atomic_bool over;

static void *open_often(void *arg)
{
	const char *path = arg;
	struct stat want, is;

	CHECK_EQ(stat(path, &want), 0);
	for (int i = 0; i < OPENS; i++) {
		int fd = vv_own_fds_open(path, O_RDONLY | O_CLOEXEC, 0);

		CHECK(fd > HIGH && vv_own_fds_has(fd) && vv_own_fds_next(fd) == fd);
		CHECK_EQ(fstat(fd, &is), 0);
		CHECK(is.st_ino == want.st_ino && is.st_dev == want.st_dev && is.st_rdev == want.st_rdev);
		CHECK_EQ(vv_own_fds_close(fd), 0);
	}
	return NULL;
}

/* As who stands in front of close(2) does. */
static void *close_all(void *arg)
{
	while (!atomic_load(&over)) {
		vv_own_fds_stop();
		for (int fd = LOW; fd < HIGH; fd++)
			if (!vv_own_fds_has(fd))
				close(fd);
		if (open("/dev/zero", O_RDONLY | O_CLOEXEC) < 0) /* in the place of what it has closed */
			CHECK(errno == EMFILE);
		vv_own_fds_go_on();
		usleep(20);
	}
	return arg;
}

int main(void)
{
	char path[] = "/dev/null";
	pthread_t opener[OPENERS], closer;

	for (int fd = LOW; fd < HIGH; fd++)
		close(fd);
	vv_own_fds_begin();
	CHECK_EQ(pthread_create(&closer, NULL, close_all, NULL), 0);
	for (int i = 0; i < OPENERS; i++)
		CHECK_EQ(pthread_create(&opener[i], NULL, open_often, path), 0);
	for (int i = 0; i < OPENERS; i++)
		CHECK_EQ(pthread_join(opener[i], NULL), 0);
	atomic_store(&over, true);
	CHECK_EQ(pthread_join(closer, NULL), 0);
	CHECK_EQ(vv_own_fds_open("/nowhere/at all", O_RDONLY, 0), -1);
	CHECK_EQ(errno, ENOENT);
	return 0;
}

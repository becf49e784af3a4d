/* Pictures for papers: the page can show one chart alone, and a browser without a window takes its
 * picture. */
#include "cli/report/report_png.h"
#include "base/child.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "cli/base/interrupt.h"
#include "cli/report/report.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *const browsers[] = { "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome" };

static const struct {
	const char *name; /* its name in the page */
	unsigned height;  /* in CSS pixels, each of which is drawn as four */
} figures[] = { { "dedup", 420 }, { "stored", 420 }, { "time", 420 }, { "changes", 460 }, { "ranks", 380 }, { "restore", 180 } };

enum { FIGURES = sizeof(figures) / sizeof(figures[0]), WIDTH = 960 };

/* The first of the browsers that is on the PATH. */
static bool find_browser(char path[PATH_MAX])
{
	const char *folders = getenv("PATH");
	bool found = false;

	for (size_t i = 0; folders && !found && i < sizeof(browsers) / sizeof(browsers[0]); i++)
		found = vv_child_find(browsers[i], folders, path);
	return found;
}

/* A path as part of a file: URL. */
static void put_url(struct vv_buf *b, const char *path)
{
	vv_buf_printf(b, "file://");
	for (const unsigned char *p = (const unsigned char *)path; *p; p++)
		if (strchr("/._-~", *p) || (*p >= '0' && *p <= '9') || ((*p | 32) >= 'a' && (*p | 32) <= 'z'))
			vv_buf_add(b, p, 1);
		else
			vv_buf_printf(b, "%%%02X", *p);
}

static int wait_for(pid_t pid, const char *browser)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return vv_err_sys(errno, "report: cannot wait for '%s'", browser);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return vv_err_set(VV_EIO, "report: '%s' failed (%s %d)", browser, WIFSIGNALED(status) ? "signal" : "exit status",
			  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* The output of the browser is discarded. Its signals have their default handlers, as a program
 * expects. */
static int run_browser(char *const *argv)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t dead;
	pid_t pid;
	int error;

	sigemptyset(&dead);
	sigaddset(&dead, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&files, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigdefault(&attr, &dead);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	error = posix_spawn(&pid, argv[0], &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return error ? vv_err_sys(error, "report: cannot run '%s'", argv[0]) : wait_for(pid, argv[0]);
}

/* The browser's own sandbox is not available to root, and the browser then refuses to start. The
 * page that it shows loads nothing. */
static int draw(char *browser, const char *page, const char *profile, const char *folder, size_t i)
{
	char headless[] = "--headless", no_gpu[] = "--disable-gpu", no_bars[] = "--hide-scrollbars",
	     twice[] = "--force-device-scale-factor=2", patience[] = "--virtual-time-budget=4000",
	     first[] = "--no-first-run", shm[] = "--disable-dev-shm-usage", as_root[] = "--no-sandbox";
	char *home = vv_mem_printf("--user-data-dir=%s", profile);
	char *size = vv_mem_printf("--window-size=%d,%u", WIDTH, figures[i].height);
	char *png = vv_mem_printf("%s/%s.png", folder, figures[i].name);
	char *shot = vv_mem_printf("--screenshot=%s", png ? png : "");
	struct vv_buf url = { 0 };
	struct stat st;
	int rc;

	put_url(&url, page);
	vv_buf_printf(&url, "#figure=%s&height=%u", figures[i].name, figures[i].height);
	vv_buf_add(&url, "", 1);
	rc = home && size && png && shot ? vv_buf_check(&url) : VV_ENOMEM;
	if (rc == 0) {
		char *argv[] = { browser, headless, no_gpu, no_bars,        twice, patience, first,
				 shm,     home,     size,   shot, (char *)url.p, geteuid() ? NULL : as_root, NULL };

		unlink(png);
		rc = run_browser(argv);
	}
	if (rc == 0 && (stat(png, &st) < 0 || st.st_size == 0))
		rc = vv_err_set(VV_EIO, "report: '%s' made no picture '%s'", browser, png);
	vv_mem_free(home);
	vv_mem_free(size);
	vv_mem_free(shot);
	vv_mem_free(png);
	vv_buf_fini(&url);
	return rc;
}

static int draw_all(char *browser, const struct vv_buf *page, const char *folder, const char *work,
		    const atomic_bool *stop, size_t *n)
{
	char *html = vv_mem_printf("%s/report.html", work), *profile = vv_mem_printf("%s/profile", work);
	struct iovec all = { page->p, page->n };
	int fd = -1, rc = html && profile ? 0 : VV_ENOMEM;

	if (rc == 0) {
		fd = open(html, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 || vv_fs_write_all(vv_fs_real(), fd, &all, 1, 0) < 0)
			rc = vv_err_sys(errno, "report: cannot write '%s'", html);
	}
	if (fd >= 0)
		close(fd);
	for (*n = 0; rc == 0 && *n < FIGURES && !atomic_load(stop); *n += rc == 0)
		rc = draw(browser, html, profile, folder, *n);
	vv_mem_free(html);
	vv_mem_free(profile);
	return rc;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st, (void)type, (void)where;
	return remove(path);
}

/* Makes a folder for varve and the browser, which makes a socket there. Its path must be short, or
 * the browser aborts: TMPDIR is used if it is short. */
static int make_work(char *work, size_t cap)
{
	static const char name[] = "varve-report-XXXXXX", in_it[] = "/org.chromium.Chromium.XXXXXX/SingletonSocket";
	const char *tmp = getenv("TMPDIR");

	if (!tmp || !*tmp || strlen(tmp) + 1 + sizeof(name) + sizeof(in_it) > sizeof(((struct sockaddr_un *)0)->sun_path))
		tmp = P_tmpdir;
	snprintf(work, cap, "%s/%s", tmp, name);
	if (!mkdtemp(work))
		return vv_err_sys(errno, "report: cannot make a folder like '%s'", work);
	return setenv("TMPDIR", work, 1) < 0 ? VV_ENOMEM : 0;
}

int vv_report_png_write(const struct vv_buf *page, const char *folder, size_t *n)
{
	char browser[PATH_MAX], work[PATH_MAX] = "", real[PATH_MAX];
	atomic_bool stop = false;
	int rc = 0;

	if (!find_browser(browser))
		return vv_err_set(VV_ENOTSUP, "report: --png needs a browser to draw with, and there is none of chromium, "
					      "chromium-browser, google-chrome and chrome on PATH; install chromium");
	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		rc = vv_err_sys(errno, "report: cannot make the folder '%s'", folder);
	if (rc == 0 && !realpath(folder, real))
		rc = vv_err_sys(errno, "report: '%s'", folder);
	if (rc == 0)
		rc = make_work(work, sizeof(work));
	if (rc == 0) {
		vv_interrupt_set_stop(&stop);
		rc = draw_all(browser, page, real, work, &stop, n);
		nftw(work, remove_one, 8, FTW_DEPTH | FTW_PHYS);
		vv_interrupt_set_stop(NULL);
		vv_interrupt_die();
	}
	return rc;
}

/* A criu that cannot work here: the first of its errors is reported, with advice. A script stands in for it. */
#include "image/check/check.h"
#include "support/place.h"
#include "vv_test.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char path[PLACE_MAX], grave[1024];

static void keep(void *arg, bool is_grave, const char *text)
{
	(void)arg;
	if (is_grave && strstr(text, "do its work"))
		snprintf(grave, sizeof(grave), "%s", text);
}

static const char *check(const char *says, int status)
{
	struct vv_check c = { .report = keep };
	FILE *f = fopen(path, "we");

	CHECK(f != NULL);
	fprintf(f, "#!/bin/sh\nif test \"$1\" = check; then\ncat <<'END'\n%sEND\nexit %d\nfi\necho 'Version: 3.17'\n", says, status);
	fclose(f);
	CHECK(chmod(path, 0700) == 0 && setenv("VARVE_CRIU", path, 1) == 0);
	grave[0] = '\0';
	CHECK_EQ(vv_check_criu(&c), 0);
	return grave;
}

static void test_reasons(void)
{
	CHECK_STR(check("Looks good.\n", 0), "");
	CHECK_STR(check("", 1), "criu cannot do its work here: 'criu check' fails and says nothing");
	CHECK_STR(check("no error in these words\n", 1), "criu cannot do its work here: 'criu check' fails and says nothing");
	CHECK_STR(check("Warn  (criu/kerndat.c:1): odd\nError (criu/cr-check.c:5): first\nError (criu/cr-check.c:9): second\n", 1),
		  "criu cannot do its work here: first");
	CHECK_STR(check("Error (criu/util.c:642): exited, status=1\nError (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds\n"
			"Error (criu/crtools.c:260): Could not initialize kernel features detection.\n", 1),
		  "criu cannot do its work here: vdso: Unexpected rt vDSO area bounds; criu 3.17 may be too old for this kernel: install a newer one");
}

int main(void)
{
	place_path(path, "criu");
	test_reasons();
	return 0;
}

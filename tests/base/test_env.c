// ctest: TIMEOUT 20
/* Settings that were kept outlive a program that clears its environment; what is set later counts before them. */
#include "base/env.h"
#include "vv_test.h"

int main(void)
{
	char *large = malloc(20000), name[32];

	memset(large, 'x', 19999);
	large[19999] = '\0';
	clearenv();
	CHECK_STR(vv_env_get("VARVE_A"), NULL);
	setenv("VARVE_A", "one", 1);
	setenv("VARVE_AB", "", 1);
	setenv("VARVE_LARGE", large, 1); /* there is no room for it, but for the others */
	setenv("AWS_REGION", "here", 1);
	setenv("HOME", "elsewhere", 1);
	vv_env_keep();
	clearenv();
	CHECK_STR(vv_env_get("VARVE_A"), "one");
	CHECK_STR(vv_env_get("VARVE_AB"), "");
	CHECK_STR(vv_env_get("AWS_REGION"), "here");
	CHECK_STR(vv_env_get("VARVE_"), NULL);
	CHECK_STR(vv_env_get("VARVE_B"), NULL);
	CHECK_STR(vv_env_get("VARVE_LARGE"), NULL);
	CHECK_STR(vv_env_get("HOME"), NULL);
	setenv("VARVE_A", "two", 1);
	CHECK_STR(vv_env_get("VARVE_A"), "two");
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "VARVE_%d", i);
		setenv(name, "0123456789", 1);
	}
	vv_env_keep();
	clearenv();
	CHECK_STR(vv_env_get("VARVE_A"), "two");
	CHECK_STR(vv_env_get("VARVE_0"), "0123456789");
	CHECK_STR(vv_env_get("VARVE_1999"), NULL);
	free(large);
	return 0;
}

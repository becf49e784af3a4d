// The smallest user of an installed libvarve: prints the version.
#include <varve/varve.h>

#include <stdio.h>

int main(void)
{
	const char *error = varve_last_error();

	printf("%s\n", varve_version());
	return error && error[0] != '\0';
}

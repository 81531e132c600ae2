/* Key pairs that exist for tests only; nothing outside tests/ knows them. */
#pragma once

static const char rsa_private[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC8OK22tArHDfqU\n"
    "1DoIO6Hhg632k17jbEu56I7xbGOl1DVd7FhSR5zl7V12fB9ve5FD2innNF4Y72ZQ\n"
    "83Y6DI+t64Fjctu3T0lHzOcluvnaPUfipN/QgHeRJiAw2wKPWXvXq08WZF5qsJIy\n"
    "pC6QEnxZ3Z/43n1VlX5KnUyJxAWcJ193r0qmdJa4iaekcpwF95GNkGUkz7PU3RS1\n"
    "P6DdFx0dwXzvgvdwHC7rFLKczU6uqykpWSU6MQO2ZDrPjyGeXe3eSpqSy7JCNBAs\n"
    "0BEqlK4Zr2KjpwWjt2NOLkTuhpkMgYiGxxn8nvAiOv87F8nYTfDJDXK0qUWTWeaI\n"
    "lGKRCCvpAgMBAAECggEAGV8Ce3g1Y7OMrXcWA3oWThGz52LiDYHRi1O/wOc9X2MF\n"
    "do2fMigZDB081fXRPvPHFwBXWaUDchUDE7Jdo2GCFI2EOWWIHGOBmz4RglJ7z2En\n"
    "SXOz/6TxeQ1MlYlQBQao3N9on7oTyAnZCx56cE0tmed34tIKzviBt4kQghl8MBob\n"
    "Wyt3dYBtNY77l8C8Ocjv4mFSms/uFnJbJwEEkAToTrLICK7u8gxFakJ9MDVczJ3S\n"
    "euyPaI5F7fZ8uh/b7QgCQEKYB4Y/w0GSUXdvx7M0fzZtZAZZJ98ce3LdCb0lrVQP\n"
    "tIBFI1nKIbdyuV3m2DulNR9Eq8KHC/93Qgll16G9IQKBgQDjaT74YErJoku7VQsU\n"
    "SJxIeBjyOmFXPvFODQG2YoxBW4KtgzddD/hMNwcHauuSuE1821DJ21/k6ATzVMcX\n"
    "zJzSmH0263/sBxOd2ckq3RG2c8aj06lvSubz7JDF0rA9aZG5RrsFyr95fy7k2/ZB\n"
    "5XOTX5FRo16CTtTo2bz/CYIO3QKBgQDT4jFrOdJScsuJ7y9Py5SdjFx4TUqxBPSY\n"
    "45X3bmL5VCbaN/1BNTdRJ9slO+R8rEcYfZX/Ea8kmFfmCOCNlvyma/jZa6Y1lRjA\n"
    "IbY+e1PmXVGwiq41b1oh/cXSM/FEcIVecqUn+C2MNigVesI9/Y+djJf0d9fAPRYF\n"
    "7Wq4o8LyfQKBgBCkVxNeGJsA4YHoC1OErMsw3sJ7OzxjQs1vbjymoZT22W1ROO/6\n"
    "hzUsobsNPAgUrLcCZbsf7riVsicMgTVgp+lRd3hZa5cePXVDxtD4NJ+hgVvj1XZr\n"
    "iNM48K9JZ9RWsW9Zmb4mxDRj9k6ROkhAPmD+kWfkCLqIglQ3+vi+/WGRAoGANt1Z\n"
    "QpSkW2kSP1NKAvWKNAmGYDhTYOcRlw1HZdyVkE40CUl6MIphGoihfFC353iMqFDM\n"
    "qFGh8m3oRM6DpuYz4bwPoez4CuPils2j7SXuIbaEUpx2Y6vDwQ1/TeDZVol0X3J8\n"
    "RY9D7AyR8I3rAjZIG9mt90WY/lRTAZHqkokFD9kCgYEAjE1sLa9J41/Vb3bfYCKi\n"
    "7sMYTO40Y+bgFzOFP0cvV4eVVzLCZ/d8VyPFD+/19yBBSOPi0VesW29kClckRGj+\n"
    "vI1QzJ5cDxzmEljxtl3p3YAz6XDtSjxin8n41lJoZIsi3TFlMBHFKzeSQiTXoyHK\n"
    "+b3E7dqLGNHQUA5Oky58YSw=\n"
    "-----END PRIVATE KEY-----\n";

static const char rsa_public[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAvDittrQKxw36lNQ6CDuh\n"
    "4YOt9pNe42xLueiO8WxjpdQ1XexYUkec5e1ddnwfb3uRQ9op5zReGO9mUPN2OgyP\n"
    "reuBY3Lbt09JR8znJbr52j1H4qTf0IB3kSYgMNsCj1l716tPFmRearCSMqQukBJ8\n"
    "Wd2f+N59VZV+Sp1MicQFnCdfd69KpnSWuImnpHKcBfeRjZBlJM+z1N0UtT+g3Rcd\n"
    "HcF874L3cBwu6xSynM1OrqspKVklOjEDtmQ6z48hnl3t3kqaksuyQjQQLNARKpSu\n"
    "Ga9io6cFo7djTi5E7oaZDIGIhscZ/J7wIjr/OxfJ2E3wyQ1ytKlFk1nmiJRikQgr\n"
    "6QIDAQAB\n"
    "-----END PUBLIC KEY-----\n";

static const char other_rsa_private[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQDD1Zsur+kixI52\n"
    "WKDHEWEqnXbXZjxA10zyuxqrToLOfuAe7imLWM2xysyRWHXNWgtnYJbswffM1D0h\n"
    "s4Yh4Yq09EvUWRGmnkIo+igjmP7KTiGRrk59RlUMp8BYM2OZ2V2eO5XWhPV8rDAS\n"
    "9gT/HJ5pWFyKWZ2p7udjKxIlb9zgwAA+19gTG8kntjCIF4cAwwYr5/V/zfMgi3sk\n"
    "iNEiO1rSQ2BMPeEvJQzJmDDr0RBa32iWOLDVq3J/6tcfWU6+N7nHvpsO3g32TNrR\n"
    "zA72Esj2g5DG8i1F4JK265m9vp/HJ153BNT1Rp6Om2PC8G9xmHJGHlVG14uDnCcV\n"
    "qNjzDcwJAgMBAAECggEAEEp4NtQ2Z4iEtg6duAGs8hptn5yRyEPA0x5tKQaxIKly\n"
    "+SUPJVhAAEQibA2OUIS8QcofXqxXcggj2mZbSFKWsy1GvkWh5MOciwPIYVxhsbBP\n"
    "NZW+Uh3kMax7dpA2fxQTKCMaeLZ7JMxpfAz65xgD4OKTYYTz9dt5ud5Zi5i4ffpa\n"
    "/QTqn3n7cbTAtBKfF2fSPHleJoZN/dGHRLB0QWLAVOl//jUG6tLUlJBlUU89wfiD\n"
    "/aFizRdq3pbHuw0lji4xY3Pbkhgvvr3gRRZbaUz9udwOa3ckBbplzrFNqqO+RYly\n"
    "5PKlGPcRZ/4sr8odzKghFuqIof+Gynqil4y+i2uNQwKBgQDlGemOCvonBfy6hEZg\n"
    "/nROTfx4VFRyVbCQje3Bgee1Hl4NdnX3sO2W8iEKdO9ZTdUfZHD2qOu1txB8X/7x\n"
    "zBFavNbK6S3YJCx5MTGxOJjA7UFM9iiSLKOLtpnOG1blUBvFtT5AXpXYDKdNhDz0\n"
    "gANOBdwTOrCOS6UMpNWl7IlGfwKBgQDa08tMvp+jMfBRh6n2lt3r75AY+iYTcq9q\n"
    "LM9HiyYi06d8b9JEnJYDGaLnXlISRx7e0qjZPtstePT6xKIvpg2BJFgv6OgOnYeB\n"
    "aTIrWyVqCLCfm2cbYfBcb0fg6JANfKdy/DIf72xNj10W2Wa7syQw/2PkcBWT/wqk\n"
    "Sf3e5RR5dwKBgBLiUegNa5Uv3ycYpBx2nOufbgIVIWjTO1yO9lwO8yRwvlvpucuS\n"
    "3+KjTqnn/Zqk2b5erxkFz3gJAOjfmMohggSysBnFoqvAP5I1xdzPx3ePluRbHfj+\n"
    "iPSJNqBQjJcWRVPEnr77jOpkEJ5JGiUlMCCMRxmmqsrv3UjvhVTJ7H7NAoGAVLTx\n"
    "mJadwxV8uoKyd0L1SvRkKlcC0DpvzsDjyAUEUSzvQ4shsO+QXkjZN4jaajrfp0+S\n"
    "ju32+AY/hqcBRUKZLal8/abB1Y6DOsQW6JOSyxXsEQyeAAqMeauV/mjoAmCDjU40\n"
    "tQoAOZHKbiLf0r7IvrLN30rH/48Vdn0x6ctxfocCgYA9TzKjbV3QkzRN+Y/S6djh\n"
    "/wYK6VmIUnGnX6vt5pVLO+PXbM5L0Rud9lzn0BAutc9oNZhYXNSKDU29cHdzZ26s\n"
    "oO7x7xMNZ+q9igz3oIVC/+23zH03Ln5CO97rH0yqR50rvlHTy/JA8jl7F/SPG4ZO\n"
    "MEpjZTO0/Po2rOaC1rzIyg==\n"
    "-----END PRIVATE KEY-----\n";

static const char ec_private[] =
    "-----BEGIN EC PRIVATE KEY-----\n"
    "MHcCAQEEIF5QTvqwUjc9TvRqnpFy+/xq6U0W9oB/Bjixc+yJOpoloAoGCCqGSM49\n"
    "AwEHoUQDQgAEE80pylg6mrGXs6EIquEhRx6v+BcaAER/Litgg8CouyQYB+7+z+49\n"
    "u/btyWgppSRDzVfMKfsmNJqoIO6h9wDW3Q==\n"
    "-----END EC PRIVATE KEY-----\n";

static const char ec_public[] = "-----BEGIN PUBLIC KEY-----\n"
                                "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEE80pylg6mrGXs6EIquEhRx6v+Bca\n"
                                "AER/Litgg8CouyQYB+7+z+49u/btyWgppSRDzVfMKfsmNJqoIO6h9wDW3Q==\n"
                                "-----END PUBLIC KEY-----\n";

static const char p384_public[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAELP331SeessWb+64v90Wk7ePsjSSdexlq\n"
    "tfyBTanjcM879Fm6iuBaft/+pYTkISLJDFvj8pkx/9OTdbp18WkysmULKuuG9whf\n"
    "Y/vEVG0/qMprKXlZVZoAHuQeTYNzg5ai\n"
    "-----END PUBLIC KEY-----\n";

static const char short_rsa_public[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDTREjdfG6nIsvK/Wza61ptVVRu\n"
    "jIPbMnuVabv2DZl/ZvvD7QxbAjzkGiVzarUOv9yY4g8MeQTyASxA/0i80JSZ0vjS\n"
    "PJ6eAUzZBq4KnLz3MGGxEwg1rHXFGTpFAA6UeYK9+x20h3GNonW8aXP+orZebnIA\n"
    "zZe3yA9dRvJGNuPw1wIDAQAB\n"
    "-----END PUBLIC KEY-----\n";

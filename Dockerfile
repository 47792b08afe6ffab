# treefocus serve, in two steps: the wheel is built with a compiler, and runs without one.
#   docker build -t treefocus .
#   docker compose up
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels ".[app,excel,scale]"

FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --create-home --home-dir /home/treefocus treefocus \
 && install -d -o treefocus -g treefocus -m 700 /jobs
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels "treefocus[app,excel,scale]" && rm -rf /wheels
USER treefocus
WORKDIR /home/treefocus
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/tmp
VOLUME ["/jobs"]
EXPOSE 8080
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 CMD ["python", "-c", "import os, sys, urllib.request as u; r = u.Request('http://127.0.0.1:8080/v1/health', headers={'Authorization': 'Bearer ' + os.environ.get('TREEFOCUS_TOKEN', '')}); sys.exit(u.urlopen(r, timeout=4).status != 200)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["treefocus", "serve", "--host", "0.0.0.0", "--port", "8080", "--jobs", "/jobs"]
CMD ["--demo"]
